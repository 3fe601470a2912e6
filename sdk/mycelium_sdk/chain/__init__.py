"""The chain's side of the SDK: clients, anchors, the one submit loop, the embedded chain and its contract.

Nothing is imported here: the modules that other parts share (`base`, `anchors`) load without a Stellar
library, the others load `stellar_sdk` when they are imported.
"""
