"""What broker and controller share: a request's context, the tables of configs, the values of access control lists, the log."""
