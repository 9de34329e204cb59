"""Who may do what: access control lists, the authorizer that decides by them, and what each API asks it."""
