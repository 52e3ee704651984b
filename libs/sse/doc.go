package sse
