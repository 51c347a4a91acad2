"""Captures of attention inputs from Hugging Face models (see docs/capture-format.md).

capture_hf.py is the program. What is where: `attention` the softmax that is applied, `masks` the mask
that the model hands over, `layers` what a layer's attributes are, `old_style` classes that do not use the
attention interface, `recorder` what is between the model and the file, `preflight` the check on a short
prompt, `writer` the file, `prompts` text to tokens and annotations, `loading` model and tokenizer.
"""

VERSION = "1.0"
