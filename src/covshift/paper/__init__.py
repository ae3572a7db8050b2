"""The paper's studies, printed figures and commands.

Zennaro & Chen, "On the use of sparse filtering for covariate shift adaptation". Nothing outside
this folder imports it; the command line loads `covshift.paper.commands` by its name.
"""
