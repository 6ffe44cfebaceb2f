"""Numbers as French readers expect them: decimal comma, narrow no-break spaces, and never a rounding that lies."""

import math
import re

NARROW = "\u202f"
MINUS = "\u2212"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def percent(probability: float) -> str:
    """« 22,9 % », « 2,21 % »; « < 0,01 % » and « > 99,9 % » only where rounding would claim nothing or everything."""
    if probability == 0 or probability == 1:
        return f"{probability * 100:.0f}{NARROW}%"
    if probability < 1e-4:
        return f"<{NARROW}0,01{NARROW}%"
    if probability >= 0.9995:
        return f">{NARROW}99,9{NARROW}%"
    return f"{number(probability * 100, 1 if probability >= 0.09995 else 2)}{NARROW}%"


def number(value: float, digits: int) -> str:
    """« 12,34 », « −3,5 », « 262 144 »; infinities as « ∞ »."""
    if math.isinf(value):
        return f"{MINUS if value < 0 else ''}∞"
    text = f"{abs(value):,.{digits}f}".replace(",", NARROW).replace(".", ",")
    return f"{MINUS}{text}" if value < 0 and any(digit in "123456789" for digit in text) else text


def decimal(value: float) -> str:
    """« 0,95 », « 1 », « 0,000001 »: as many digits as the value has."""
    return f"{value:.12f}".rstrip("0").rstrip(".").replace(".", ",")


def tiny(value: float) -> str:
    """« 0,000019 », « −0,062 »: two significant digits, down to a millionth of a millionth."""
    return decimal(float(f"{value:.1e}")).replace("-", MINUS)


def scientific(value: float) -> str:
    """« 2,8 × 10⁻¹⁷ »."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.replace('.', ',').replace('-', MINUS)} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def count(value: int) -> str:
    """« 262 144 »."""
    return number(value, 0)


def milliseconds(seconds: float) -> str:
    """« 8,53 ms », « 92,4 ms », « 1 840 ms »: three significant digits or more."""
    value = seconds * 1e3
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{number(value, digits)}{NARROW}ms"


def mebibytes(size: float) -> str:
    """« 21,0 Mio » for a number of bytes, 2**20 to a Mio."""
    return f"{number(size / 2**20, 1 if size < 1000 * 2**20 else 0)}{NARROW}Mio"


def gigabytes(size: float) -> str:
    """« 140 Go », « 3,35 To », « 0,54 Go » for a number of bytes, 1e9 to a Go."""
    value, unit = (size / 1e12, "To") if size >= 1e12 else (size / 1e9, "Go")
    return f"{number(value, 2 if value < 10 else 1 if value < 100 else 0)}{NARROW}{unit}"


def dollars(value: float) -> str:
    """« 0 $ », « 0,00123 $ », « 12,30 $ », « 1 234,50 $ »: cents, or three significant digits below a dollar."""
    digits = max(2, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{number(value, digits)}{NARROW}$"


def french(prose: str) -> str:
    """Our own sentences with the spaces French printing wants: narrow and unbreakable inside « » and before ; : ! ? %."""
    return re.sub(r" (?=[;:!?»%])|(?<=«) ", NARROW, prose)


def plural(value: int, singular: str, plural_form: str | None = None) -> str:
    """« 1 token », « 262 144 tokens »."""
    return f"{count(value)} {singular if abs(value) < 2 else plural_form or singular + 's'}"
