// Package gc gives up what a log need not keep any more, and deletes the objects
// that nothing refers to.
//
// Three things are decided apart. Retention (PlanRetention, pure) trims logs by
// age, by size and after a user's trim, waiting for tables and consumer groups. The
// fold then knows which objects no live entry lies in; the Collector deletes them
// after a grace in which readers may still hold them, and only what was dead in the
// checkpoint before the newest too, so that whoever starts from a checkpoint finds
// every object that it believes in. Uploads that no record ever named are orphans
// once their writer is closed: then no record can name them any more. No wall clock
// decides a delete; trimming by age asks the coordination store what time it is.
package gc
