package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// OpenSM has tables for the jobs of a file, and when the file changes, its heavy sweeps bring it tables for those,
// without a change of the subnet.
func TestTraffic(t *testing.T) {
	f, err := gen.Tree(gen.TreeSpec{Ports: 36, Pods: []int{4}, Hosts: 6, Spines: 3, Parallel: 2})
	s := start(t, f, err)
	name := filepath.Join(s.dir, "traffic.yaml")
	write := func(seed int) {
		var hosts []string
		for _, p := range s.f.CAPorts() {
			hosts = append(hosts, s.f.Node(s.f.Owner(p)).GUID.String())
		}
		writeFile(t, name, fmt.Appendf(nil, "jobs: [{name: a, hosts: [%s], patterns: [{pattern: \"permutation:%d\", size: 1G}]}]\n", strings.Join(hosts, ", "), seed))
	}
	seconds := func(tables *lft.Tables) bound.Times {
		t.Helper()
		x := short.Must(jobs.Read(name, os.ReadFile))(t)
		in := short.Must(x.In(s.f, nil))(t)
		d := short.Must(in.Demand(t.Context()))(t)
		return short.Must(bound.TimesUnder(t.Context(), s.f, tables, d))(t)
	}
	write(1)
	d := s.stay(t, "ibweave-updn", "log: {level: debug}\nuniform-floor: 2\ntraffic: "+name+"\n")
	c := s.dial(t)
	first := s.have(t, c)
	fresh := seconds(first.LFT)
	seed := 2
	for write(seed); seconds(first.LFT).Switches < 2.9*fresh.Hosts && seed < 100; seed++ {
		write(seed + 1)
	}
	was, sweeps := seconds(first.LFT), 1
	now := was
	for ; now.Switches >= was.Switches && sweeps < 30; sweeps++ {
		d.sweep()
		d.wait("-> SUBNET UP\n", sweeps+1)
		now = seconds(s.have(t, c).LFT)
	}
	t.Logf("%v seconds for the first jobs; for others %v, after %d sweeps %v", fresh, was, sweeps, now)
	if fresh.Switches > 2.1*fresh.Hosts || was.Switches < 2.9*was.Hosts || now.Switches > 2.1*now.Hosts {
		t.Errorf("%v for the first jobs, %v for others, after %d sweeps %v: want two flows on a cable at most, then three or more, then two", fresh, was, sweeps, now)
	}
	if log := d.log(); strings.Contains(log, "ibweave: ERR") {
		t.Errorf("the plugin says %q", ours(strings.Split(log, "\n")))
	}
	if !strings.Contains(s.ownLog(t), `"rebalanced": true`) {
		t.Error("no step is in the log")
	}
}
