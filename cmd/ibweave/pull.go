package main

import (
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
		Args:  a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.args(cmd, args); err != nil {
				return err
			}
			s, err := a.readLive(cmd.Context(), &r, open.LiveOptions{MaxMLID: fabric.LID(mlid), PathSLs: !noPathSL, PKeys: true})
			if err != nil {
				return err
			}
			if err := writePulled(dir, s); err != nil {
				return err
			}
			if s.SLsFailed != nil {
				fmt.Fprintf(a.stderr, "path SLs were not read: %v; check leaves undecided what depends on them\n", s.SLsFailed)
			}
			if err := a.printPulled(dir, s); err != nil {
				return err
			}
			return a.subnetProblems(s.Problems)
		},
	}
	r.flags(cmd.Flags())
	cmd.Flags().StringVarP(&dir, "output", "o", "", "`DIR` for the files; it is made if it is not there")
	mlid = uint16(mft.MaxMLID)
	mlidFlag(cmd.Flags(), &mlid, "max-mlid", "read multicast tables up to this `MLID`")
	cmd.Flags().BoolVar(&noPathSL, "no-path-sl", false, "do not ask subnet administration for the SLs of paths")
	a.nameFlag(cmd)
	a.require(cmd, "output")
	return cmd
}

// describeSLs says what became of path SLs.
func describeSLs(s *open.Swept) string {
	switch {
	case s.FewSLs:
		return "not asked for: all SLs are on one VL"
	case s.SLsFailed != nil:
		return "not read"
	case s.PathSLs == nil:
		return "not asked for, as --no-path-sl says"
	}
	said := fmt.Sprintf("%s in use", text.CountGrouped(slsInUse(s.Fabric, s.PathSLs), "SL", "SLs"))
	if n := len(s.PathSLs.Ports()); n > 0 {
		said += fmt.Sprintf("; %s on other SLs than the rest of their switch", text.CountGrouped(n, "port", "ports"))
	}
	return said
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

// describePKeys says how many tables and partitions there are.
func describePKeys(tables [][]fabric.PKey) string {
	ports, partitions := 0, map[fabric.PKey]bool{}
	for _, keys := range tables {
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
func writePulled(dir string, s *open.Swept) error {
	f := s.Fabric
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
		{outdir.LFTsName, func(w io.Writer) error { return dump.WriteLFTs(w, f, s.Tables, opt) }},
		{outdir.MCFDBsName, func(w io.Writer) error { return dump.WriteMCFDBs(w, s.Multicast.Tables, opt) }},
		{outdir.MFTsName, func(w io.Writer) error {
			return dump.WriteMFTs(w, s.Multicast.Tables, opt, slices.Max(append(s.MFTCapacity, 0)))
		}},
		{outdir.SL2VLName, func(w io.Writer) error { return dump.WriteSL2VL(w, s.SL2VL, opt) }},
		{open.PKeysName, func(w io.Writer) error { return dump.WritePKeys(w, f, s.PKeys) }},
	}
	if s.PathSLs != nil {
		list = append(list, file{outdir.PathSLsName, func(w io.Writer) error { return dump.WritePathSLs(w, f, s.PathSLs, opt) }})
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
func (a *app) printPulled(dir string, s *open.Swept) error {
	n := text.Grouped[int]
	read := count(s.Unread, func(unread bool) bool { return !unread })
	masks, mfts := 0, s.Multicast.Tables
	for _, l := range mfts.MLIDs() {
		masks += len(mfts.Ports(l))
	}
	var b text.Sheet
	b.Row("fabric", "%s", fabricSize(s.Fabric))
	b.Row("LFTs", "%s of %s switches, LIDs to %d", n(read), n(s.Fabric.NumSwitches()), s.Tables.MaxLID())
	room := 0 // of the smallest table
	for _, n := range s.MFTCapacity {
		if n > 0 && (room == 0 || n < room) {
			room = n
		}
	}
	b.Row("MFTs", "%s of %s, %s in their masks", n(len(mfts.MLIDs())), text.CountGrouped(room, "MLID", "MLIDs"), text.CountGrouped(masks, "port", "ports"))
	b.Row("SL2VL", "%s", text.CountGrouped(s.SL2VL.VLs(), "VL", "VLs"))
	b.Row("path SLs", "%s", describeSLs(s))
	b.Row("P_Keys", "%s", describePKeys(s.PKeys))
	b.Row("requests", "%s", n(s.Requests))
	b.Row("written to", "%s", dir)
	_, err := a.stdout.Write(b.Bytes())
	return err
}
