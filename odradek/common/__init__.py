"""The common part of broker and controller: request contexts, config tables, ACL values, the log."""
