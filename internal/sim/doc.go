// Package sim searches for schedules that break the engine: it steps several
// instances over one coordination log, one object store and one table catalog in
// memory, injects faults into every call between them, and checks the invariants of
// the engine after each step.
//
// One goroutine takes every step, and one seed decides every choice, so that a run
// can be replayed exactly. What is stepped is the code of production: wal.Core,
// compaction.Pass and CatchUp, commit.Committer, log.Reader and shard.Follower. Only
// their drivers, which are goroutines and timers, are replaced.
//
// A step is one event of one instance: an append, one effect of a writer, entries
// delivered to a view, one step of a pass, a commit, a read, a crash. Where an
// effect waits for the outside, other instances may take steps before it goes on,
// so that calls overlap as they do between machines.
//
// An oracle folds the same log, and believes nothing that it can look up: it reads
// what an object holds, what a table holds and what was acknowledged.
//
//   - world: the stores, the choice of steps, the run from start to healing
//   - instance: a view and what publishes through it
//   - appender, compactor, committer, reader: drivers that step the engine
//   - faults: which calls fail, and how; a plan is the list of those that did
//   - oracle: the invariants
//   - mutants: deliberate defects, each of which the oracle must find
//
// All of it is test code. A search over many seeds, and one run again:
//
//	go test ./internal/sim -run 'TestSimulation$' -v -timeout=1h -seeds=5000 -steps=500 -seed=1
//	go test ./internal/sim -run 'TestSimulation$' -v -seeds=1 -seed=17 -events='put#6 write#4'
//
// A failure prints such a command, with the few faults that are enough.
// To add a fault, add a kind to the calls that it may hit; to add a rule, teach the
// oracle to check it and add a mutant that breaks it.
package sim
