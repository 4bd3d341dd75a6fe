package capture

import (
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Place returns a function that finds the file and line of a finding: those
// that it names; else, if it is about ports, its port or node in the topology;
// else the table of its switch, or of the first switch of its witness. With
// topologyOnly, l has the lines of a given topology text and not of the files
// that were read, so a file that the finding names is ignored.
func Place(l *state.Lines, topologyOnly bool) func(f *verify.Finding) (file string, line int) {
	return func(f *verify.Finding) (string, int) {
		if f.File != "" && !topologyOnly {
			return f.File, max(1, f.Line)
		}
		_, table := verify.RuleByName(f.Rule)
		if table || len(f.Ports) == 0 {
			at := f.Switch
			if at == 0 && len(f.Witness) > 0 {
				at = f.Witness[0].Switch
			}
			if l.Tables != "" {
				return l.Tables, max(l.Switches[at], 1)
			}
			return l.Topology, max(l.Nodes[at], 1)
		}
		for _, e := range f.Ports {
			if n := l.Ports[topology.NodePort{Node: e.Node, Port: e.Port}]; n > 0 {
				return l.Topology, n
			}
		}
		for _, e := range f.Ports {
			if n := l.Nodes[e.Node]; n > 0 {
				return l.Topology, n
			}
		}
		return l.Topology, 1
	}
}
