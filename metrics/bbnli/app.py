"""Gradio page of the metric on the Hugging Face Hub."""

from pathlib import Path

import evaluate
from evaluate.utils import launch_gradio_widget

if __name__ == "__main__":
    # By file, not by folder: on the Hub the folder has another name than the module.
    launch_gradio_widget(evaluate.load(str(Path(__file__).with_name("bbnli.py"))))
