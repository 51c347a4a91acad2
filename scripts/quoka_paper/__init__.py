"""What the paper claims, measured on captures of a model of one's choice (scripts/reproduce_paper.sh).

What is where: `study_prompts` the prompts of a study set; `steps` the programs that are run; `claims` what a claim is
and how votes make a verdict; `claims_paper`, `claims_open` the claims; `prompts_statistics` means and intervals over
prompts; `evidence`, `geometry_evidence` numbers of files; `judge` a claim with its evidence; `report`,
`report_tables` the text; `page` its HTML.
"""
