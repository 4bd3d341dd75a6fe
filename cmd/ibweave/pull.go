package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/subnet"
	"github.com/ibweave/ibweave/state/open"
)

func (a *app) pullCommand() *cobra.Command {
	var (
		r    reach
		dir  string
		mlid uint16

		noPathSL bool
	)
	cmd := &cobra.Command{
		Use:   "pull --ibsim [NAME] | --umad DEVICE[:PORT] -o DIR",
		Short: "read the forwarding tables of a live fabric into dump files",
		Long: `Discover the fabric, read the linear and multicast forwarding tables and the
SL-to-VL maps of all its switches and the P_Key tables of all end ports, and write into
DIR what check and diff read: ` + outdir.TopologyName + `, ` + outdir.LFTsName + `, ` + outdir.MFTsName + `,
` + outdir.MCFDBsName + `, ` + outdir.SL2VLName + ` and ` + open.PKeysName + `. Where the VL of a packet depends on its SL, subnet administration
is asked for the SLs of all paths, and ` + outdir.PathSLsName + ` has them; on large fabrics that
keeps the subnet manager busy for some time (--no-path-sl). Nothing is changed.
` + reachHelp + `

Tables that could not be read, and what contradicts itself, go to standard
error, and the exit status is 1.`,
		Example: `  ibweave pull --ibsim -o live
  ibweave check live`,
		Args: a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.args(cmd, args); err != nil {
				return err
			}
			return a.sweep(cmd.Context(), &r, func(c *subnet.Client, d *subnet.Discovery) error {
				t, err := a.pull(cmd.Context(), c, d, mlid)
				if err != nil {
					return err
				}
				paths, err := a.pullPaths(cmd.Context(), c, d.Fabric, t.SL2VL, noPathSL)
				if err != nil {
					return err
				}
				s := a.startStage("read P_Key tables")
				var pkeys pulledPKeys
				pkeys.tables, pkeys.problems, pkeys.requests, err = c.PKeys(cmd.Context(), d)
				s.End()
				if err != nil {
					return err
				}
				if err := writePulled(dir, d, t, paths.sls, pkeys.tables); err != nil {
					return err
				}
				if paths.failed != nil {
					fmt.Fprintf(a.stderr, "path SLs were not read: %v; check leaves undecided what depends on them\n", paths.failed)
				}
				if err := a.printPulled(dir, d, t, paths, pkeys); err != nil {
					return err
				}
				return a.subnetProblems(slices.Concat(d.Problems, t.Problems, pkeys.problems))
			})
		},
	}
	r.flags(cmd.Flags())
	cmd.Flags().StringVarP(&dir, "output", "o", "", "`DIR` for the files; it is made if it is not there")
	cmd.Flags().Uint16Var(&mlid, "max-mlid", uint16(mft.MaxMLID), "read multicast tables up to this `MLID`")
	cmd.Flags().BoolVar(&noPathSL, "no-path-sl", false, "do not ask subnet administration for the SLs of paths")
	a.nameFlag(cmd)
	a.require(cmd, "output")
	return cmd
}

// pulledPaths is what pull knows of path SLs.
type pulledPaths struct {
	sls      *lft.PathSLs // nil where they were not read
	said     string       // what became of them
	failed   error        // why they were not read, though they are wanted
	requests int
}

// pullPaths asks subnet administration for the SLs of the paths of f, where VLs depend on them.
// Without an answer failed is why. The error is ctx's.
func (a *app) pullPaths(ctx context.Context, c *subnet.Client, f *fabric.Fabric, sl2vl *lft.SL2VL, not bool) (p pulledPaths, err error) {
	drops := slices.ContainsFunc(sl2vl.Maps(), func(m lft.VLMap) bool { return slices.Contains(m[:], lft.DropVL) })
	switch {
	case sl2vl.VLs() <= 1 && !drops:
		p.said = "not asked for: all SLs are on one VL"
		return p, nil
	case not:
		p.said = "not asked for, as --no-path-sl says"
		return p, nil
	}
	s := a.startStage("read path SLs")
	defer s.End()
	sm, err := c.Manager(ctx)
	if err == nil {
		p.sls, p.requests, err = c.PathSLs(ctx, sm, f)
	}
	if ctx.Err() != nil {
		return p, err
	}
	if err != nil {
		p.said, p.failed = "not read", err
		return p, nil
	}
	p.said = fmt.Sprintf("%s in use", text.CountGrouped(slsInUse(f, p.sls), "SL", "SLs"))
	if n := len(p.sls.Ports()); n > 0 {
		p.said += fmt.Sprintf("; %s on other SLs than the rest of their switch", text.CountGrouped(n, "port", "ports"))
	}
	return p, nil
}

// slsInUse counts the SLs of paths that are known.
func slsInUse(f *fabric.Fabric, p *lft.PathSLs) int {
	used := map[fabric.SL]bool{}
	look := func(row []fabric.SL) {
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			if f.LIDPort(lid) != fabric.NoPort && row[lid] != lft.UnknownSL {
				used[row[lid]] = true
			}
		}
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		look(p.Given(s))
	}
	for _, port := range p.Ports() {
		look(p.PortRow(port))
	}
	return len(used)
}

// pulledPKeys is what pull knows of P_Key tables.
type pulledPKeys struct {
	tables   [][]fabric.PKey
	problems []fabric.Problem
	requests int
}

// String says how many tables and partitions there are.
func (p *pulledPKeys) String() string {
	ports, partitions := 0, map[fabric.PKey]bool{}
	for _, keys := range p.tables {
		if keys != nil {
			ports++
		}
		for _, key := range keys {
			partitions[key.Partition()] = true
		}
	}
	return fmt.Sprintf("%s of %s", text.CountGrouped(len(partitions), "partition", "partitions"), text.CountGrouped(ports, "end port", "end ports"))
}

// writePulled writes the files of pull.
func writePulled(dir string, d *subnet.Discovery, t *subnet.Tables, sls *lft.PathSLs, pkeys [][]fabric.PKey) error {
	f := d.Fabric
	capacity := 0
	for _, sw := range d.Switches {
		capacity = max(capacity, int(sw.MulticastFDBCap))
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var opt dump.WriteOptions
	type file struct {
		name  string
		write func(io.Writer) error
	}
	list := []file{
		{outdir.TopologyName, func(w io.Writer) error { return topology.Write(w, f) }},
		{outdir.LFTsName, func(w io.Writer) error { return dump.WriteLFTs(w, f, t.LFT, opt) }},
		{outdir.MCFDBsName, func(w io.Writer) error { return dump.WriteMCFDBs(w, t.MFT, opt) }},
		{outdir.MFTsName, func(w io.Writer) error { return dump.WriteMFTs(w, t.MFT, opt, capacity) }},
		{outdir.SL2VLName, func(w io.Writer) error { return dump.WriteSL2VL(w, t.SL2VL, opt) }},
		{open.PKeysName, func(w io.Writer) error { return dump.WritePKeys(w, f, pkeys) }},
	}
	if sls != nil {
		list = append(list, file{outdir.PathSLsName, func(w io.Writer) error { return dump.WritePathSLs(w, f, sls, opt) }})
	} else if err := os.Remove(filepath.Join(dir, outdir.PathSLsName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // those of an earlier pull are of other tables
	}
	for _, file := range list {
		if err := files.Write(filepath.Join(dir, file.name), file.write); err != nil {
			return err
		}
	}
	return nil
}

// printPulled prints what was read, for people.
func (a *app) printPulled(dir string, d *subnet.Discovery, t *subnet.Tables, paths pulledPaths, pkeys pulledPKeys) error {
	n := text.Grouped[int]
	read := count(t.Read, func(ok bool) bool { return ok })
	masks := 0
	for _, l := range t.MFT.MLIDs() {
		masks += len(t.MFT.Ports(l))
	}
	var b facts
	b.row("fabric", "%s", fabricSize(d.Fabric))
	b.row("LFTs", "%s of %s switches, LIDs to %d", n(read), n(d.Fabric.NumSwitches()), t.LFT.MaxLID())
	room := 0 // of the smallest table
	for _, sw := range d.Switches {
		if n := int(sw.MulticastFDBCap); n > 0 && (room == 0 || n < room) {
			room = n
		}
	}
	b.row("MFTs", "%s of %s, %s in their masks", n(len(t.MFT.MLIDs())), text.CountGrouped(room, "MLID", "MLIDs"), text.CountGrouped(masks, "port", "ports"))
	b.row("SL2VL", "%s", text.CountGrouped(t.SL2VL.VLs(), "VL", "VLs"))
	b.row("path SLs", "%s", paths.said)
	b.row("P_Keys", "%s", &pkeys)
	b.row("requests", "%s", n(d.Requests+t.Requests+paths.requests+pkeys.requests))
	b.row("written to", "%s", dir)
	_, err := a.stdout.Write(b.Bytes())
	return err
}
