package subnet

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// MaxPaths is how many paths PathSLs asks for at most. OpenSM works some microseconds on
// each, and answers no other request meanwhile.
const MaxPaths = 4 << 20

// TooManyPathsError says that a subnet has more paths than PathSLs asks for.
type TooManyPathsError struct{ Paths int }

func (e *TooManyPathsError) Error() string {
	return fmt.Sprintf("%d paths, and at most %d are asked for", e.Paths, MaxPaths)
}

// PathSLs asks subnet administration for the SLs of the paths from all ports of f to all
// LIDs (PathRecord, IBA 15.2.5.16): for the paths of a port at once, or where the answer
// is cut off, as by libumad2sim.so, for each by itself. What subnet administration has no
// record of, since the ports share no partition, say, has lft.UnknownSL. The Manager is
// asked for as many at a time as Options.Window says. It also returns the number of
// requests.
//
// Errors: a *TooManyPathsError, and those of Adm except for paths without a record.
func (c *Client) PathSLs(ctx context.Context, to Manager, f *fabric.Fabric) (sls *lft.PathSLs, requests int, err error) {
	var ports []fabric.PortID
	lids := 0
	f.EndPorts(func(p fabric.PortID) {
		if f.LID(p) != 0 {
			ports = append(ports, p)
			lids += 1 << f.LMC(p)
		}
	})
	if n := len(ports) * lids; n > MaxPaths {
		return nil, 0, &TooManyPathsError{n}
	}
	rows := make(map[fabric.PortID][]fabric.SL, len(ports))
	for _, p := range ports {
		row := make([]fabric.SL, int(f.MaxLID())+1)
		for l := range row {
			row[l] = lft.UnknownSL
		}
		rows[p] = row
	}
	var count atomic.Int64
	// ask enters the records of paths from a port, to one LID or with 0 to all.
	ask := func(ctx context.Context, port fabric.PortID, lid fabric.LID) error {
		count.Add(1)
		want := mad.PathRecord{SLID: f.LID(port), DLID: lid, NumPath: 1}
		method, mask := mad.GetTable, mad.PathSLID
		if lid != 0 {
			method, mask = mad.Get, mad.PathSLID|mad.PathDLID|mad.PathNumPath
		}
		list, err := c.paths(ctx, to, method, want, mask)
		for _, r := range list {
			if row := rows[port]; r.SLID == want.SLID && int(r.DLID) < len(row) {
				row[r.DLID] = r.SL
			}
		}
		return err
	}
	var single atomic.Bool // answers are cut off
	all := func(ctx context.Context, port fabric.PortID) error {
		if !single.Load() {
			err := ask(ctx, port, 0)
			if !errors.Is(err, mad.ErrTruncated) {
				return err
			}
			single.Store(true)
		}
		for l := fabric.LID(1); l <= f.MaxLID(); l++ {
			if q := f.LIDPort(l); q == fabric.NoPort || q == port {
				continue
			}
			if err := ask(ctx, port, l); err != nil {
				return err
			}
		}
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.opt.Window)
	for i, p := range ports {
		if i == 0 { // tells whether anybody answers, and how
			err = all(ctx, p)
		} else {
			group.Go(func() error { return par.Catch(func() error { return all(ctx, p) }) })
		}
		if err != nil || ctx.Err() != nil {
			break
		}
	}
	if waited := group.Wait(); err == nil {
		err = waited
	}
	if err != nil {
		return nil, int(count.Load()), err
	}
	return lft.PathSLsFrom(f, rows), int(count.Load()), nil
}

// paths asks for path records; it has none where there are none.
func (c *Client) paths(ctx context.Context, to Manager, method mad.Method, want mad.PathRecord, mask uint64) ([]mad.PathRecord, error) {
	answer, err := c.Adm(ctx, to, &mad.Adm{
		Header:        mad.Header{Method: method, Attribute: mad.AttrPathRecord},
		ComponentMask: mask, Data: want.Append(nil),
	})
	if status := new(mad.StatusError); errors.As(err, &status) && status.Status == mad.NoRecords {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	records := [][]byte{answer.Data}
	if method == mad.GetTable {
		if records, err = answer.Records(mad.PathRecordSize); err != nil {
			return nil, err
		}
	}
	list := make([]mad.PathRecord, len(records))
	for i, r := range records {
		if err := list[i].Unmarshal(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}
