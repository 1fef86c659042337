"""The configuration files of other MCP clients: where they are, what they hold, and how the bridge is put into them.

Knows the files and nothing of how their servers are started. A file that cannot be read is never written.
"""

__all__: list[str] = []
