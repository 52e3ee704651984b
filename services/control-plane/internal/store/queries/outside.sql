-- name: PendingOutsidePromotions :many
-- Moves past the gate that nobody has decided yet.
select * from promotions where origin = 'outside' and state = 'pending' order by id;

-- name: TenantOfVersion :one
select tenant from versions where model_id = @model_id and version = @version;
