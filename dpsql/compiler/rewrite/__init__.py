"""Plan to plan: from what the analyst asks to what may run, in the order of `pipeline.py`.

A rule that forgot its work gives a refusal, because sensitivity is derived from the plan that comes out.
"""
