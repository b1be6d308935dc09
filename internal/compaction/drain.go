package compaction

import "context"

// Drain works until nothing is left that can be done now, and lets go of its
// session. What is quarantined is left, see Troubles. It takes the place of Run
// and Once for a driver that works on demand only.
func (d *Driver) Drain(ctx context.Context) error {
	defer d.endSession(ctx)
	for {
		worked, err := d.Once(ctx)
		if err != nil || !worked {
			return err
		}
	}
}
