package scheduler

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
)

// WriteConf writes Slurm's topology.conf of topology/tree (topology.conf(5)).
func (t *Topology) WriteConf(w io.Writer) error {
	var b strings.Builder
	t.writeHead(&b, "topology.conf of TopologyPlugin=topology/tree")
	for i := range t.Groups {
		g := &t.Groups[i]
		if g.Level == 0 {
			fmt.Fprintf(&b, "SwitchName=%s Nodes=%s\n", g.Name, hostlist.Fold(g.Hosts))
		} else {
			fmt.Fprintf(&b, "SwitchName=%s Switches=%s\n", g.Name, hostlist.Fold(g.Children))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteYAML writes topology.yaml (Slurm 25.05, topology.yaml(5)): the topology "tree", the
// default, and the topology "block" of the leaves with at least size hosts.
func (t *Topology) WriteYAML(w io.Writer, size int) error {
	var b strings.Builder
	t.writeHead(&b, "topology.yaml of Slurm 25.05")
	b.WriteString("- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n")
	for i := range t.Groups {
		g := &t.Groups[i]
		fmt.Fprintf(&b, "      - switch: %q\n", g.Name)
		if g.Level == 0 {
			fmt.Fprintf(&b, "        nodes: %q\n", hostlist.Fold(g.Hosts))
		} else {
			fmt.Fprintf(&b, "        children: %q\n", hostlist.Fold(g.Children))
		}
	}
	blocks, tooFew := t.Blocks(size)
	sizes := fmt.Sprint(size)
	for n := 2; n <= len(blocks); n *= 2 { // size times powers of two
		sizes += fmt.Sprintf(", %d", n*size)
	}
	fmt.Fprintf(&b, "- topology: block\n  cluster_default: false\n  block:\n    block_sizes: [%s]\n    blocks:\n", sizes)
	for _, g := range blocks {
		fmt.Fprintf(&b, "      - block: %q\n        nodes: %q\n", g.Name, hostlist.Fold(g.Hosts))
	}
	for _, g := range tooFew {
		fmt.Fprintf(&b, "# in no block, fewer than %s: %s\n", text.Count(size, "host", "hosts"), g.Name)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeHead writes comments: the contents, which Slurm it is for, and what is left out.
func (t *Topology) writeHead(b *strings.Builder, wants string) {
	leaves := t.Leaves()
	fmt.Fprintf(b, "# %s on %s, for %s\n", text.CountGrouped(t.Hosts, "host", "hosts"), text.CountGrouped(len(leaves), "leaf", "leaves"), wants)
	for _, out := range t.LeftOut {
		fmt.Fprintf(b, "# left out, %s: %s, %s\n", out.Reason, text.Count(len(out.Nodes), "adapter", "adapters"), fabric.Printable(text.Few(slices.Compact(slices.Clone(out.Nodes)), 4)))
	}
}

// SmallestLeaf returns the least number of hosts on a leaf.
func (t *Topology) SmallestLeaf() int {
	least := t.Hosts
	for _, g := range t.Leaves() {
		least = min(least, len(g.Hosts))
	}
	return least
}

// Blocks returns the leaves with at least size hosts, and the others, which are in no
// block: Slurm wants at least the first block size in each.
func (t *Topology) Blocks(size int) (blocks, tooFew []Group) {
	for _, g := range t.Leaves() {
		if len(g.Hosts) >= size {
			blocks = append(blocks, g)
		} else {
			tooFew = append(tooFew, g)
		}
	}
	return blocks, tooFew
}
