-- name: InsertProxyTicket :exec
insert into proxy_tickets (ticket_digest, grant_sealed, expires_at) values ($1, $2, $3);

-- name: ClaimProxyTicket :one
-- One of two that claim at once gets it.
delete from proxy_tickets where ticket_digest = $1 and expires_at > now() returning grant_sealed;

-- name: DeleteExpiredProxyTickets :exec
delete from proxy_tickets where expires_at <= now();
