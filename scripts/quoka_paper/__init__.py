"""What the paper claims, measured on captures of a model of one's choice (scripts/reproduce_paper.sh).

What is where: `study_prompts` the prompts of a study set; `prompts_statistics` means and intervals over prompts.
"""
