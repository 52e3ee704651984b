-- name: CountPendingApprovals :one
select count(*) from approvals where tenant = @tenant and status = 'pending';
