"""Authorization: access control lists, the authorizer that decides by them, and the rules of the APIs."""
