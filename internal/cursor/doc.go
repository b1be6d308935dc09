// Package cursor remembers how far logs were consumed, and shares the partitions
// of streams among the members of a consumer group.
//
// A Cursor is a place in one log: everything up to its mark is consumed, and
// single ranges after it may be. A durable cursor is one coordination document,
// changed by compare-and-set; whoever opens it stamps it as the owner first, so
// that an owner who was replaced cannot change it any more: its Persist fails with
// base.ErrFenced. The names of cursors belong to one incarnation of a stream: a
// stream that was dropped and created again starts anew.
//
// A group has no leader. One document holds its members and who owns which
// partition; every change of it is a compare-and-set by whoever notices that one
// is needed, and its revision is the generation. Assign is pure, so it does not
// matter who that is. Members keep leases; each watches the one after it. A
// partition changes hands through its cursor: the old owner finishes what is in
// flight, persists and lets go; the new one stamps the cursor with the generation
// that gave it the partition and only then reads where to begin. An owner that
// does not let go in time is overruled by the same stamp.
//
// So records are delivered at least once, and no commit of a group goes back.
package cursor
