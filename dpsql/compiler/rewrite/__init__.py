"""Plan to plan: from what the analyst asks to what may run. One rule, one file.

A rule that forgot its work gives a refusal, because sensitivity is derived from the plan that comes out.
"""
