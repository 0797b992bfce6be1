"""Linear's GraphQL API as a provider."""
