"""Records to tables and Plotly figures. Nothing here computes a probability or touches a model."""
