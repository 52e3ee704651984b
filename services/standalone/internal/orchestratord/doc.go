// Package orchestratord emulates a Prefect 3 server: the part of its REST interface that the platform and its command
// line use, kept in Postgres, with an executor that carries out runs inside this process.
//
// The executor serves the deployments without a work pool and those in pools of type [InProcess]; runs of other pools
// wait for a worker, as on a real server. One process at a time executes: the holder of an advisory lock of the
// database. It claims due runs, oldest first, so that a run is PENDING exactly while it is being started, RUNNING
// exactly while the [Runner] is in it. A run that a new holder finds in either state was cut off: it becomes CRASHED,
// or CANCELLED if a cancellation was requested. SCHEDULED runs continue. Package transition has the rules between
// states.
//
// Every answer follows its commit, and each change of a run is one transaction
// that locks the run's row.
//
// The official client and its process worker work against it: flows that are called, served or deployed. Runs that
// their processes carry out are marked, so that the executor neither starts nor settles them. Events, including those
// of task runs, are read and dropped; the only event sent is the cancellation of a run. Not offered: automations,
// blocks, artifacts, pausing, inputs, concurrency limits other than those of deployments and pools, queues other than
// "default", schedules other than cron.
package orchestratord
