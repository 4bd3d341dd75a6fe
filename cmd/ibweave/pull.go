package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state/open"
)

// manyRequests is some seconds of work: pull announces larger numbers of requests.
const manyRequests = 10_000

func (a *app) pullCommand() *cobra.Command {
	var (
		r    reach
		dir  string
		mlid uint16

		noPathSL bool
		opt      = open.LiveOptions{SomeMaps: true, PKeys: true}
	)
	cmd := &cobra.Command{
		Use:   "pull --ibsim [NAME] | --umad DEVICE[:PORT] -o DIR",
		Short: "read the forwarding tables of a live fabric into dump files",
		Args:  a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.args(cmd, args); err != nil {
				return err
			}
			if cmd.Flags().Changed("max-mlid") {
				opt.MaxMLID = fabric.LID(mlid)
			}
			opt.PathSLs = !noPathSL
			opt.Before = func(requests int, to string) {
				if requests > manyRequests {
					fmt.Fprintf(a.stderr, "about %s requests to %s follow, at most %d at a time\n", text.Grouped(requests), to, r.window)
				}
			}
			s, err := a.readLive(cmd.Context(), &r, opt)
			if err != nil {
				return err
			}
			if err := s.Write(dir); err != nil {
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
	mlidFlag(cmd.Flags(), &mlid, "max-mlid", "read multicast tables up to this `MLID`, by default up to those in use")
	cmd.Flags().BoolVar(&opt.AllPaths, "path-sl", false, "ask subnet administration for the SL of every path")
	cmd.Flags().BoolVar(&noPathSL, "no-path-sl", false, "do not ask subnet administration for the SLs of paths")
	cmd.MarkFlagsMutuallyExclusive("path-sl", "no-path-sl")
	a.nameFlag(cmd)
	a.require(cmd, "output")
	return cmd
}

// describeSLs says what was read of path SLs.
func describeSLs(s *open.Swept) string {
	switch {
	case s.SLsFailed != nil:
		return "not read"
	case s.PathSLs == nil && s.FewSLs:
		return "not asked for: all SLs are on one VL"
	case s.PathSLs == nil:
		return "not asked for, as --no-path-sl says"
	case s.SampledSLs > 0:
		return fmt.Sprintf("SL %d on %s, which stands for all (--path-sl asks for each)", s.PathSLs.Row(0)[0], text.CountGrouped(s.SampledSLs, "path", "paths"))
	}
	said := fmt.Sprintf("%s in use", text.CountGrouped(s.PathSLs.InUse(s.Fabric), "SL", "SLs"))
	if n := len(s.PathSLs.Ports()); n > 0 {
		said += fmt.Sprintf("; %s on other SLs than the rest of their switch", text.CountGrouped(n, "port", "ports"))
	}
	return said
}

// describePKeys counts partitions, and end ports that have tables.
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

// printPulled prints what was read, for people.
func (a *app) printPulled(dir string, s *open.Swept) error {
	n := text.Grouped[int]
	read := text.CountIf(s.Unread, func(unread bool) bool { return !unread })
	masks, mfts := 0, s.Multicast.Tables
	for _, l := range mfts.MLIDs() {
		masks += len(mfts.Ports(l))
	}
	var b text.Sheet
	b.Row("fabric", "%s", fabricSize(s.Fabric))
	b.Row("LFTs", "%s of %s switches, LIDs to %d", n(read), n(s.Fabric.NumSwitches()), s.Tables.MaxLID())
	room := 0 // MLIDs of the smallest table
	for _, n := range s.MFTCapacity {
		if n > 0 && (room == 0 || n < room) {
			room = n
		}
	}
	b.Row("MFTs", "%s of %s, %s in their masks", n(len(mfts.MLIDs())), text.CountGrouped(room, "MLID", "MLIDs"), text.CountGrouped(masks, "port", "ports"))
	maps := ""
	if s.AskedMaps != s.Maps { // of equal maps only one was read
		maps = fmt.Sprintf("; %s of %s maps of switches were read, others are the same", n(s.AskedMaps), n(s.Maps))
	}
	b.Row("SL2VL", "%s%s", text.CountGrouped(s.SL2VL.VLs(), "VL", "VLs"), maps)
	b.Row("path SLs", "%s", describeSLs(s))
	b.Row("P_Keys", "%s", describePKeys(s.PKeys))
	b.Row("requests", "%s", n(s.Requests))
	b.Row("written to", "%s", dir)
	_, err := a.stdout.Write(b.Bytes())
	return err
}
