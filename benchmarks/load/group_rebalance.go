package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The steps of a group's life that are timed, in their order.
const (
	stepJoin   = "join"
	stepSync   = "sync"
	stepLeave  = "leave"
	stepRejoin = "rejoin"
)

// runGroupRebalance measures a group of -members members, each on a connection of its
// own, -groups times over, and gives each step's median:
//
//	join    every member asks for an id, then all join, until all have the generation that has them all
//	sync    the leader assigns, all are told
//	leave   one member leaves
//	rejoin  the others learn it from a heartbeat and join, until all have the next generation
//
// Connecting, finding the coordinator and taking the group down are outside.
func runGroupRebalance(args []string) (*result, error) {
	c := newCommon("group-rebalance")
	size := c.flags.Int("members", 500, "members of a group")
	groups := c.flags.Int("groups", 5, "groups, one after the other")
	ctx, cancel, err := c.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()

	measuring, err := startSpan(c.pids)
	if err != nil {
		return nil, err
	}
	took := make(map[string][]time.Duration)
	for i := range *groups {
		name := fmt.Sprintf("%s-%d", c.topic, i)
		if err := c.rebalanceOnce(ctx, name, *size, took); err != nil {
			return nil, fmt.Errorf("group %d of %d: %w", i+1, *groups, err)
		}
	}
	measured, err := measuring.end(0)
	if err != nil {
		return nil, err
	}
	measured.Groups = *groups
	measured.StepsMs = make(map[string]float64)
	for step, durations := range took {
		slices.Sort(durations)
		measured.StepsMs[step] = float64(durations[len(durations)/2]) / float64(time.Millisecond)
	}
	return measured, nil
}

// rebalanceOnce takes one group through all steps, noting how long each took.
func (c *common) rebalanceOnce(ctx context.Context, group string, size int, took map[string][]time.Duration) error {
	members := make([]*member, size)
	for i := range members {
		var err error
		if members[i], err = c.newMember(ctx, group); err != nil {
			return err
		}
		defer members[i].conn.Close()
	}
	if err := members[0].awaitLoaded(ctx); err != nil {
		return err
	}
	timed := func(step string, run func() error) error {
		begin := time.Now()
		if err := run(); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		took[step] = append(took[step], time.Since(begin))
		return nil
	}
	if err := timed(stepJoin, func() error {
		if err := together(members, (*member).announce); err != nil {
			return err
		}
		return joinAll(ctx, members)
	}); err != nil {
		return err
	}
	if err := timed(stepSync, func() error { return together(members, (*member).sync) }); err != nil {
		return err
	}
	leaver := slices.IndexFunc(members, func(m *member) bool { return m.others == nil })
	if err := timed(stepLeave, func() error { return members[leaver].leave(members[leaver]) }); err != nil {
		return err
	}
	left := slices.Delete(slices.Clone(members), leaver, leaver+1)
	if err := timed(stepRejoin, func() error {
		if err := together(left, (*member).awaitRebalance); err != nil {
			return err
		}
		return joinAll(ctx, left)
	}); err != nil {
		return err
	}
	if err := left[0].leave(left...); err != nil {
		return err
	}
	return left[0].deleteGroup()
}

// together runs the same for every member at once, and gives the first failure without
// waiting for the others, who may be waiting for the one that failed.
func together(members []*member, run func(*member) error) error {
	done := make(chan error, len(members))
	for _, m := range members {
		go func() { done <- run(m) }()
	}
	for range members {
		if err := <-done; err != nil {
			return err
		}
	}
	return nil
}

// joinAll has all members join until all are in one generation. With no initial delay
// the first of them make a generation of their own: its leader, who can tell by the list
// it is given, has them all join again once the others' joins have begun a rebalance.
func joinAll(ctx context.Context, members []*member) error {
	verdicts := &verdicts{byGeneration: make(map[int32]*verdict)}
	return together(members, func(m *member) error {
		for {
			if err := m.join(); err != nil {
				return err
			}
			known := verdicts.of(m.generation)
			if m.others != nil {
				if known.isWhole = len(m.others) == len(members); !known.isWhole {
					if err := m.awaitRebalance(); err != nil {
						return err
					}
				}
				close(known.told)
			}
			select {
			case <-known.told:
			case <-ctx.Done():
				return fmt.Errorf("generation %d has no leader: %w", m.generation, ctx.Err())
			}
			if known.isWhole {
				return nil
			}
		}
	})
}

// verdict is what a generation's leader tells its followers.
type verdict struct {
	told    chan struct{}
	isWhole bool
}

type verdicts struct {
	mutex        sync.Mutex
	byGeneration map[int32]*verdict
}

func (v *verdicts) of(generation int32) *verdict {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.byGeneration[generation] == nil {
		v.byGeneration[generation] = &verdict{told: make(chan struct{})}
	}
	return v.byGeneration[generation]
}
