"""Entry point: the frame all pages share, around the one asked for."""

from pages.ui.frame import run_page

run_page()
