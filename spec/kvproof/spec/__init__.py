"""What must hold: the language, the contract machine, and its proof in Z3.

Read ``contract/`` first (one file per party), then ``lang.py`` for what its words mean, then
``obligations.py`` for what is proved about it.
"""
