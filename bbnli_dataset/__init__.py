"""BBNLI as a Hugging Face dataset repository: templates, builder and the Parquet files built from them."""
