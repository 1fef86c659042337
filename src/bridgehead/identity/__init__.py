"""Who is calling and what they may do. Knows nothing of HTTP beyond the one header that names a credential."""

from bridgehead.identity.authenticate import LOCAL_OWNER, Authenticator
from bridgehead.identity.local_token import ensure_local_token
from bridgehead.identity.policy import OwnerPolicy

__all__ = ["LOCAL_OWNER", "Authenticator", "OwnerPolicy", "ensure_local_token"]
