package main

import (
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/partitions"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// partitioned returns true if an audit of partitions was asked for.
func (in *audit) partitioned() bool { return in.PKeys != "" || in.partitions != "" }

// checkPartitions adds the findings on P_Key tables and partitions.conf to r.
func (a *app) checkPartitions(in *audit, f *fabric.Fabric, r *verify.Result) (err error) {
	x := partitions.Audit{Fabric: f, Name: in.partitions, Manager: fabric.NoPort}
	if err := a.reader(in).PKeyTables(); err != nil {
		return err
	}
	x.Tables, x.Manager = in.State.PKeys, in.State.Manager
	if in.manager != "" {
		if x.Manager, err = findEndPort(f, in.manager); err != nil {
			return usagef("--sm: %w", err)
		}
	}
	if in.partitions != "" {
		if x.Conf, err = readAs(a, in, in.partitions, dump.ReadPartitions); err != nil {
			return err
		}
	}
	if x.Tables == nil && x.Conf == nil {
		return nil
	}
	s := a.startStage("partitions")
	defer s.End()
	found := partitions.Check(&x)
	r.Partitions = &found.Counts
	r.Add(found.Findings...)
	r.Leave(found.Undecided...)
	return nil
}

// findEndPort finds an end port by its LID, its GUID,
// NODE:PORT, or the name or GUID of a node that has only one.
func findEndPort(f *fabric.Fabric, text string) (fabric.PortID, error) {
	if lid, err := strconv.ParseUint(text, 10, 16); err == nil {
		if p := f.LIDPort(fabric.LID(lid)); p != fabric.NoPort {
			return p, nil
		}
		return fabric.NoPort, usagef("no port has LID %d", lid)
	}
	guid, err := fabric.ParseGUID(text)
	isGUID := err == nil && strings.HasPrefix(text, "0x")
	ends, byGUID := map[fabric.NodeID][]fabric.PortID{}, fabric.NoPort
	f.EndPorts(func(p fabric.PortID) {
		ends[f.Owner(p)] = append(ends[f.Owner(p)], p)
		if isGUID && f.PortGUID(p) == guid {
			byGUID = p
		}
	})
	if byGUID != fabric.NoPort {
		return byGUID, nil
	}
	nodes, err := names.Find(f, text)
	if err != nil {
		if p, err := drain.FindPort(f, text); strings.Contains(text, ":") && err == nil {
			return p, nil
		}
		return fabric.NoPort, err
	}
	if len(nodes) != 1 || len(ends[nodes[0]]) != 1 {
		return fabric.NoPort, usagef("%q has several ports; want NODE:PORT, the GUID of a port or its LID", text)
	}
	return ends[nodes[0]][0], nil
}
