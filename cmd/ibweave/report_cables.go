package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/report/page"
)

// cableLoads are what cables may show of jobs, --traffic, and of groups, --host-groups. An old state
// without the hosts of the jobs, or without tables, is without the jobs.
func (a *app) cableLoads(ctx context.Context, r *reporting, x *reported) (list []page.Counter, err error) {
	if r.traffic == "" && a.hostGroups.name == "" {
		return nil, nil
	}
	switch {
	case x.tables != nil:
	case r.traffic != "" && x.isOld:
		a.tellNoJobs(x, errors.New("it has no forwarding tables"))
		return nil, nil
	case r.traffic != "":
		return nil, usagef("--traffic needs forwarding tables")
	default: // groups are boxes alone
		return nil, nil
	}
	set, err := a.groupsOf(x.fabric, true)
	if err != nil {
		return nil, err
	}
	if r.jobsFile != nil {
		switch t, err := r.jobsFile.In(x.fabric, set); {
		case err != nil && x.isOld:
			a.tellNoJobs(x, err)
		case err != nil:
			return nil, err
		default:
			if list, err = jobLoads(ctx, x, t); err != nil {
				return nil, err
			}
		}
	}
	if set == nil {
		return list, nil
	}
	s := a.startStage("count routes of groups")
	defer s.End()
	for i := range set.Groups {
		c, err := groupLoads(ctx, x, &set.Groups[i])
		if err != nil {
			return nil, err
		}
		list = append(list, c)
		s.Set(i+1, len(set.Groups))
	}
	return list, nil
}

// tellNoJobs says on standard error why a state shows no jobs.
func (a *app) tellNoJobs(x *reported, why error) {
	fmt.Fprintf(a.stderr, "ibweave: %s is without the jobs of --traffic: %v\n", x.name, why)
}

// jobLoads are the bytes of all jobs, and of each.
func jobLoads(ctx context.Context, x *reported, t *jobs.Traffic) ([]page.Counter, error) {
	by, lost, err := t.Loads(ctx, x.tables)
	if err != nil {
		return nil, err
	}
	list := make([]page.Counter, len(lost)+1)
	for i := range list {
		list[i] = page.Counter{Name: "jobs", Unit: "bytes of all", FromTables: true, Values: make([]float64, x.fabric.NumPorts())}
		if i > 0 {
			list[i].Name, list[i].Unit = "job "+t.Name(int32(i-1)), "bytes"
		}
	}
	for p, loads := range by {
		for _, l := range loads {
			list[0].Values[p] += l.Bytes
			list[l.Job+1].Values[p] += l.Bytes
		}
	}
	return list, nil
}

// groupLoads is the routes of which an end is in a group.
func groupLoads(ctx context.Context, x *reported, g *groups.Group) (c page.Counter, err error) {
	f := x.fabric
	member := make(map[fabric.NodeID]bool, len(g.Nodes))
	for _, n := range g.Nodes {
		member[n] = true
	}
	var ends []fabric.PortID
	var all, own []int
	for s := range fabric.NodeID(f.NumSwitches()) {
		for _, p := range f.HostsOn(s) {
			if member[f.Owner(p)] {
				own = append(own, len(ends))
			}
			all = append(all, len(ends))
			ends = append(ends, p)
		}
	}
	loads, _, err := lft.DemandLoads(ctx, f, x.tables, ends, func(dst int) iter.Seq2[int, int64] {
		return func(yield func(int, int64) bool) {
			from := own
			if member[f.Owner(ends[dst])] {
				from = all
			}
			for _, src := range from {
				if src != dst && !yield(src, 1) {
					return
				}
			}
		}
	})
	if err != nil {
		return c, err
	}
	c = page.Counter{Name: "group " + g.String(), Unit: "routes from and to it", FromTables: true, Values: make([]float64, len(loads))}
	for p, n := range loads {
		c.Values[p] = float64(n)
	}
	return c, nil
}
