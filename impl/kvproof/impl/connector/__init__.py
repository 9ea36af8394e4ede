"""The drop-in for vLLM: what it loads by ``kv_connector_module_path``.

    KVTransferConfig(
        kv_connector="OffloadingConnector",
        kv_connector_module_path="kvproof.impl.connector",
        kv_role="kv_both",
        kv_connector_extra_config={"cpu_bytes_to_use": 8 << 30},
    )

The only part of kvproof that imports vLLM. Its class has the stock connector's name, since that is
the name that ``--kv-offloading-size`` sets.
"""

from __future__ import annotations

from kvproof.impl.connector.connector import OffloadingConnector

__all__ = ["OffloadingConnector"]
