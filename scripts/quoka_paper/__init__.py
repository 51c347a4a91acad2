"""The paper's claims on trial: statistics over prompts, evidence from results files, verdicts, report."""
