package open

import (
	"bufio"
	"bytes"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
	"github.com/ibweave/ibweave/state"
)

// Reading holds counters of ports and the time in which they counted.
type Reading struct {
	*dump.Counters
	Kind    string  // "counts", or the "difference" of two readings
	Seconds float64 // the time in which they counted; 0: unknown
	Resets  int     // ports whose counters were reset between two readings
}

// Counters reads counters of the ports of f from now, which is a file, or a folder or archive
// with one. If before is not "", it returns the counts since that earlier reading. seconds is the
// time in which they counted; if it is 0, the dates of two runs of ibdiagnet tell it.
func (in *Input) Counters(f *fabric.Fabric, now, before string, seconds float64) (*Reading, error) {
	c, date, err := in.readCounters(now, f)
	if err != nil {
		return nil, err
	}
	if before == "" {
		return &Reading{c, "counts", seconds, 0}, nil
	}
	earlier, begun, err := in.readCounters(before, f)
	if err != nil {
		return nil, err
	}
	x := &Reading{Kind: "difference", Seconds: seconds}
	x.Counters, x.Resets = c.Since(f, earlier)
	if apart := date.Sub(begun).Seconds(); seconds == 0 && !begun.IsZero() && !date.IsZero() {
		if apart <= 0 {
			return nil, errorf("%s is of %s, and not before %s, which is of %s", before, begun.Format(runDate), now, date.Format(runDate))
		}
		x.Seconds = apart
	}
	return x, nil
}

// runDate is the layout of the date in files of ibdiagnet.
const runDate = "2006-01-02 15:04:05 MST -0700"

// readCounters reads one reading. date is zero if the file has no date.
func (in *Input) readCounters(name string, f *fabric.Fabric) (c *dump.Counters, date time.Time, err error) {
	read := func(name string, form dump.Form, from io.Reader) error {
		defer in.stage("read counters of " + name)()
		if form == dump.Database {
			r, err := ibdiagnet.ReadCounters(name, from, f, ibdiagnet.Options{Lenient: in.Lenient, Strict: in.Strict})
			if err != nil {
				return notALine(err)
			}
			in.tell(f, r.Problems...)
			c = r.Counters
			date, _ = time.Parse(runDate, r.Date) // zero if there is none
			return nil
		}
		data, err := files.ReadAll(name, from, Limit, new(atomic.Int64))
		if err != nil {
			return NewError(err)
		}
		var problems []fabric.Problem
		if c != nil { // in a folder, the file of cables is read last
			if problems, err = c.ReadCables(name, data, f, dump.Options{Lenient: true}); err == nil {
				in.tell(f, problems...)
			}
			return err
		}
		if c, problems, err = dump.ReadCounters(name, data, f, dump.Options{Lenient: in.Lenient}); err == nil {
			in.tell(f, problems...)
		}
		return err
	}
	switch {
	case !Folder(name):
		err = in.eachReading(name, read)
	case files.Archive(name):
		taken, failed := "", error(nil)
		var cables func() error // reads the cables in an archive after its counters
		err = files.EachMember(name, func(m files.Member) error {
			if m.Name == taken { // if two have one name, as tar -r makes them, the last counts
				taken, failed, c, date = "", nil, nil, time.Time{}
			}
			from := bufio.NewReaderSize(m.From, 64<<10)
			head, err := from.Peek(64 << 10)
			if err != nil && err != io.EOF {
				return err
			}
			switch form := dump.Recognize(head); {
			case files.IsArchive(head):
			case form == dump.Cables:
				data, err := files.ReadAll(m.Name, from, Limit, new(atomic.Int64))
				cables = func() error { return read(filepath.Join(name, m.Name), form, bytes.NewReader(data)) }
				return err
			case taken == "" && (form == dump.Database || form.Info().Kind == state.PortCounters):
				taken, failed = m.Name, read(filepath.Join(name, m.Name), form, from)
			}
			return nil
		})
		if err != nil {
			err = NewError(err)
		} else if err = failed; err == nil && cables != nil {
			err = cables()
		}
	default:
		for _, form := range append([]dump.Form{dump.Database}, dump.Forms(state.PortCounters)...) {
			var path string
			if path, err = Find(name, form); path != "" && (c == nil || form == dump.Cables) && err == nil {
				err = in.eachReading(path, read)
			}
			if err != nil {
				return nil, date, err
			}
		}
	}
	if err == nil && c == nil {
		err = errorf("%s has no counters; want FILE, or a folder with db_csv of ibdiagnet or what perfquery or ibqueryerrors prints", name)
	}
	return c, date, err
}

// eachReading calls read with the form and text of a file or of standard input.
func (in *Input) eachReading(name string, read func(name string, form dump.Form, from io.Reader) error) error {
	if Database(name) {
		t, err := files.OpenText(name)
		if err != nil {
			return NewError(err)
		}
		defer func() { _ = t.Close() }()
		return read(name, dump.Database, t.From)
	}
	data, err := in.Text(name)
	if err != nil {
		return err
	}
	return read(name, dump.Recognize(data), bytes.NewReader(data))
}
