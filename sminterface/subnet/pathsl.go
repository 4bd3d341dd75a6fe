package subnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// maxPaths is the greatest number of paths that PathSLs asks for. OpenSM
// works some microseconds on each, and answers no other request meanwhile.
const maxPaths = 4 << 20

// PathSLs asks subnet administration for the SLs of the paths from every n-th port of f to all LIDs
// (PathRecord, IBA 15.2.5.16): for all paths of a port at once, or, if answers are cut off, as by
// libumad2sim.so, for each path separately. Paths that it does not ask for, and paths without a
// record (for example because the ports share no partition) get lft.UnknownSL. At most
// Options.Window requests are under way at a time. It also returns the number of requests.
//
// Errors: too many paths, and those of Adm except for paths without a record.
func (c *Client) PathSLs(ctx context.Context, to Manager, f *fabric.Fabric, n int) (sls *lft.PathSLs, requests int, err error) {
	ports, lids := sources(f, n)
	if paths := len(ports) * lids; paths > maxPaths {
		return nil, 0, fmt.Errorf("%d paths, and at most %d are asked for", paths, maxPaths)
	}
	q := &pathQuery{c: c, to: to, f: f}
	rows := make([][]fabric.SL, len(ports))
	ask := func(i int) (err error) {
		rows[i], err = q.askPort(ctx, ports[i])
		return err
	}
	if len(ports) > 0 { // the first shows if answers come, and if whole
		err = ask(0)
	}
	if err == nil {
		err = par.ForEach(ctx, c.opt.Window, max(0, len(ports)-1), func(i int) error { return ask(i + 1) })
	}
	if err != nil {
		return nil, int(q.requests.Load()), err
	}
	byPort := make(map[fabric.PortID][]fabric.SL, len(ports))
	for i, p := range ports {
		byPort[p] = rows[i]
	}
	return lft.PathSLsFrom(f, byPort), int(q.requests.Load()), nil
}

// sources lists every n-th end port that has a LID, and counts the LIDs of all.
func sources(f *fabric.Fabric, n int) (ports []fabric.PortID, lids int) {
	i := -1
	f.EndPorts(func(p fabric.PortID) {
		if f.LID(p) != 0 {
			if i++; i%n == 0 {
				ports = append(ports, p)
			}
			lids += 1 << f.LMC(p)
		}
	})
	return ports, lids
}

// The greatest numbers of sources and destinations of SamplePathSLs.
const sampledSources, sampledDestinations = 8, 64

// SamplePathSLs asks subnet administration for the SLs of some paths, between end ports all over
// the fabric. It returns the SL of the first path, how many paths it asked for, and true if all of
// them have that SL. Errors are those of PathSLs.
func (c *Client) SamplePathSLs(ctx context.Context, to Manager, f *fabric.Fabric) (sl fabric.SL, paths int, same bool, err error) {
	ports, _ := sources(f, 1)
	q := &pathQuery{c: c, to: to, f: f}
	for i := range min(sampledSources, len(ports)) {
		from := ports[i*len(ports)/min(sampledSources, len(ports))]
		row := slices.Repeat([]fabric.SL{lft.UnknownSL}, int(f.MaxLID())+1)
		for j := range min(sampledDestinations, len(ports)) {
			dest := ports[(i+j*len(ports)/min(sampledDestinations, len(ports)))%len(ports)]
			want := mad.PathRecord{SLID: f.LID(from), DLID: f.LID(dest), NumPath: 1}
			if dest == from {
				continue
			}
			if err := q.ask(ctx, row, mad.Get, want, mad.PathSLID|mad.PathDLID|mad.PathNumPath); err != nil {
				return sl, paths, false, err
			}
			got := row[want.DLID]
			if paths++; paths == 1 {
				sl = got
			}
			if got != sl || got == lft.UnknownSL {
				return sl, paths, false, nil
			}
		}
	}
	return sl, paths, paths > 0, nil
}

// pathQuery asks for the paths of a fabric.
type pathQuery struct {
	c        *Client
	to       Manager
	f        *fabric.Fabric
	single   atomic.Bool // answers are cut off, so ask for one path at a time
	requests atomic.Int64
}

// askPort returns the SLs of the paths from a port, by DLID.
func (q *pathQuery) askPort(ctx context.Context, port fabric.PortID) ([]fabric.SL, error) {
	row := slices.Repeat([]fabric.SL{lft.UnknownSL}, int(q.f.MaxLID())+1)
	if !q.single.Load() {
		err := q.ask(ctx, row, mad.GetTable, mad.PathRecord{SLID: q.f.LID(port), NumPath: 1}, mad.PathSLID)
		if !errors.Is(err, mad.ErrTruncated) {
			return row, err
		}
		q.single.Store(true)
	}
	for l := fabric.LID(1); l <= q.f.MaxLID(); l++ {
		if p := q.f.LIDPort(l); p == fabric.NoPort || p == port {
			continue
		}
		want := mad.PathRecord{SLID: q.f.LID(port), DLID: l, NumPath: 1}
		if err := q.ask(ctx, row, mad.Get, want, mad.PathSLID|mad.PathDLID|mad.PathNumPath); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// ask enters the SLs of the records that match want into a row.
func (q *pathQuery) ask(ctx context.Context, row []fabric.SL, method mad.Method, want mad.PathRecord, mask uint64) error {
	q.requests.Add(1)
	list, err := askRecords[mad.PathRecord](ctx, q.c, q.to, mad.PathRecordSize, &mad.Adm{
		Header:        mad.Header{Method: method, Attribute: mad.AttrPathRecord},
		ComponentMask: mask, Data: want.Append(nil),
	})
	for _, r := range list {
		if r.SLID == want.SLID && int(r.DLID) < len(row) {
			row[r.DLID] = r.SL
		}
	}
	return err
}
