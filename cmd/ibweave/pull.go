package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

func (a *app) pullCommand() *cobra.Command {
	var (
		r    reach
		dir  string
		mlid uint16
	)
	cmd := &cobra.Command{
		Use:   "pull --ibsim [NAME] | --umad DEVICE[:PORT] -o DIR",
		Short: "read the forwarding tables of a live fabric into dump files",
		Long: `Discover the fabric, read the linear and multicast forwarding tables and the
SL-to-VL maps of all its switches, and write into DIR what check and diff read:
` + compile.TopologyName + `, ` + compile.LFTsName + `, ` + compile.MFTsName + `, ` + compile.MCFDBsName + ` and
` + compile.SL2VLName + `. It only reads.
` + reachHelp + `

Tables that could not be read, and what contradicts itself, go to standard
error, and the exit status is 1.`,
		Example: `  ibweave pull --ibsim -o live
  ibweave check -t live/` + compile.TopologyName + ` --lfts live/` + compile.LFTsName,
		Args: a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.args(cmd, args); err != nil {
				return err
			}
			if fabric.LID(mlid) < mft.MinMLID || fabric.LID(mlid) > mft.MaxMLID {
				return usagef("--max-mlid %#x: want %#x to %#x", mlid, uint16(mft.MinMLID), uint16(mft.MaxMLID))
			}
			c, err := a.open(cmd.Context(), &r)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }() // what it was for is done, or has failed
			d, err := a.sweep(cmd.Context(), c)
			if err != nil {
				return err
			}
			s := a.startStage("read tables", 0)
			t, err := c.Pull(cmd.Context(), d, subnet.PullOptions{MaxMLID: fabric.LID(mlid)})
			s.end()
			if err != nil {
				return err
			}
			if err := writePulled(dir, d, t); err != nil {
				return err
			}
			if err := a.printPulled(dir, d, t); err != nil {
				return err
			}
			return a.subnetProblems(append(d.Problems, t.Problems...))
		},
	}
	r.flags(cmd.Flags())
	cmd.Flags().StringVarP(&dir, "output", "o", "", "`DIR` for the files; it is made if it is not there")
	cmd.Flags().Uint16Var(&mlid, "max-mlid", uint16(mft.MaxMLID), "read multicast tables up to this `MLID`")
	a.nameFlag(cmd)
	a.require(cmd, "output")
	return cmd
}

// writePulled writes the files of pull.
func writePulled(dir string, d *subnet.Discovery, t *subnet.Tables) error {
	f := d.Fabric
	capacity := 0
	for _, sw := range d.Switches {
		capacity = max(capacity, int(sw.MulticastFDBCap))
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var opt dump.WriteOptions
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{compile.TopologyName, func(w io.Writer) error { return topology.Write(w, f) }},
		{compile.LFTsName, func(w io.Writer) error { return dump.WriteLFTs(w, f, t.LFT, opt) }},
		{compile.MCFDBsName, func(w io.Writer) error { return dump.WriteMCFDBs(w, t.MFT, opt) }},
		{compile.MFTsName, func(w io.Writer) error { return dump.WriteMFTs(w, t.MFT, opt, capacity) }},
		{compile.SL2VLName, func(w io.Writer) error { return dump.WriteSL2VL(w, t.SL2VL, opt) }},
	} {
		if err := files.Write(filepath.Join(dir, file.name), file.write); err != nil {
			return err
		}
	}
	return nil
}

// printPulled prints what was read, for people.
func (a *app) printPulled(dir string, d *subnet.Discovery, t *subnet.Tables) error {
	var b bytes.Buffer
	f := d.Fabric
	n := func(n int) string { return report.Grouped(int64(n)) }
	read := 0
	for _, ok := range t.Read {
		if ok {
			read++
		}
	}
	masks := 0
	for _, l := range t.MFT.MLIDs() {
		masks += len(t.MFT.Ports(l))
	}
	fmt.Fprintf(&b, "fabric       %s, %s, %s\n", plural(f.NumSwitches(), "switch", "switches"), plural(len(f.CAPorts()), "CA port", "CA ports"), plural(f.NumLinks(), "link", "links"))
	fmt.Fprintf(&b, "LFTs         %s of %s switches, LIDs to %d\n", n(read), n(f.NumSwitches()), t.LFT.MaxLID())
	fmt.Fprintf(&b, "MFTs         %s, %s in their masks\n", plural(len(t.MFT.MLIDs()), "MLID", "MLIDs"), plural(masks, "port", "ports"))
	fmt.Fprintf(&b, "SL2VL        %s\n", plural(t.SL2VL.VLs(), "VL", "VLs"))
	fmt.Fprintf(&b, "requests     %s\n", n(d.Requests+t.Requests))
	fmt.Fprintf(&b, "written to   %s\n", dir)
	_, err := a.stdout.Write(b.Bytes())
	return err
}
