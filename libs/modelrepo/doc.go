package modelrepo
