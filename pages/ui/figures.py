"""How tables and charts are shown, on the bench as in the labs."""

import pandas as pd
import streamlit as st

CHART_BUTTONS = {"modeBarButtons": [["toImage"]], "displaylogo": False}


def french_decimals(frame: pd.DataFrame) -> dict:
    """The configuration of the columns of a table: decimal commas in a French browser."""
    return {column: st.column_config.NumberColumn(format="localized") for column in frame.select_dtypes("float")}
