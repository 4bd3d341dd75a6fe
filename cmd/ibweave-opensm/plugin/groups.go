package plugin

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sort"

	"go.uber.org/zap"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// declaredGroups is groups.json of a compiled directory: who
// sends to which MGID, and which scheme made its tree. Join
// states do not tell who sends: IBA has none for a port that only
// receives (15.2.5.17.2). So every full member would count as a
// sender, and no group would get the masks for a single sender.
type declaredGroups struct {
	name   string
	sum    [sha256.Size]byte // SHA-256 of both files, to see changes
	groups map[mft.MGID]*declaredGroup
	order  []*declaredGroup // as in the file
}

// declaredGroup is an entry of the file: an MGID.
type declaredGroup struct {
	name, scheme       string
	mlid               fabric.LID
	sl                 fabric.SL
	senders, receivers []fabric.GUID // port GUIDs, ascending
}

// guid2lidName is the file beside groups.json that has the ports of its LIDs: compile writes both.
const guid2lidName = outdir.GUID2LIDName

// readGroups reads groups.json and the guid2lid beside it, or returns old if that
// was read from the same bytes. Errors are those of files, and *fabric.ParseError.
func readGroups(name string, old *declaredGroups) (*declaredGroups, error) {
	data, err := readFile(name, maxGroups, groupsTimes)
	if err != nil {
		return nil, err
	}
	beside := filepath.Join(filepath.Dir(name), guid2lidName)
	lids, err := readFile(beside, maxGUID2LID, guid2lidTimes)
	if err != nil {
		return nil, fmt.Errorf("the LIDs in %s are those of the %s beside it: %w", name, guid2lidName, err)
	}
	both := sha256.New()
	fmt.Fprintf(both, "%d ", len(data))
	both.Write(data)
	both.Write(lids)
	sum := [sha256.Size]byte(both.Sum(nil))
	if old != nil && old.sum == sum {
		return old, nil
	}
	ranges, _, err := dump.ReadGUID2LID(beside, lids, dump.Options{})
	if err != nil {
		return nil, err
	}
	port := make(map[fabric.LID]fabric.GUID, len(ranges))
	for _, r := range ranges {
		port[r.Min] = r.Port
	}
	d, err := parseGroups(name, data, port)
	if err != nil {
		return nil, err
	}
	d.sum = sum
	return d, nil
}

// parseGroups parses groups.json; port has the port GUID of each base LID.
func parseGroups(name string, data []byte, port map[fabric.LID]fabric.GUID) (*declaredGroups, error) {
	d := &declaredGroups{name: name, groups: make(map[mft.MGID]*declaredGroup)}
	// fail returns an error about the text at an offset.
	fail := func(at int64, err error) error {
		rest := data[at:]
		at += int64(len(rest) - len(bytes.TrimLeft(rest, " \t\r\n,")))
		from := bytes.LastIndexByte(data[:at], '\n') + 1
		line, _, _ := bytes.Cut(data[from:], []byte("\n"))
		return &fabric.ParseError{File: name, Line: 1 + bytes.Count(data[:at], []byte("\n")), Column: int(at) - from,
			Text: string(bytes.TrimRight(line, "\r")), Err: err}
	}
	// broken is fail for an error of the JSON decoder at an offset.
	broken := func(at int64, err error) error {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			at = max(0, syntax.Offset-1)
		case errors.As(err, &kind):
			err = fmt.Errorf("%s is a JSON %s: want the groups.json of a compiled directory", kind.Field, kind.Value)
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			at, err = int64(len(data)), errors.New("the file ends in the middle; want a list of groups, as compile writes it")
		}
		return fail(min(at, int64(len(data))), err)
	}
	j := json.NewDecoder(bytes.NewReader(data))
	j.DisallowUnknownFields()
	if open, err := j.Token(); err != nil {
		return nil, broken(0, err)
	} else if open != json.Delim('[') {
		return nil, fail(0, errors.New("want a list of groups, as compile writes it in groups.json"))
	}
	for j.More() {
		at := j.InputOffset()
		var e mft.Entry
		if err := j.Decode(&e); err != nil {
			return nil, broken(at, err)
		}
		if err := mft.CheckMGID(e.MGID); err != nil {
			return nil, fail(at, fmt.Errorf("group %q: %w", e.Name, err))
		}
		if d.groups[e.MGID] != nil {
			return nil, fail(at, fmt.Errorf("a second group with MGID %s", e.MGID))
		}
		if err := compile.CheckMulticastScheme(e.Scheme); err != nil {
			return nil, fail(at, fmt.Errorf("group %q: %w", e.Name, err))
		}
		g := &declaredGroup{name: e.Name, scheme: e.Scheme, mlid: e.MLID, sl: e.SL}
		for _, list := range []struct {
			lids []fabric.LID
			to   *[]fabric.GUID
		}{{e.Senders, &g.senders}, {e.Receivers, &g.receivers}} {
			if len(list.lids) > len(port) {
				return nil, fail(at, fmt.Errorf("group %q lists %d LIDs: want each once, and %s has %d ports", e.Name, len(list.lids), guid2lidName, len(port)))
			}
			for _, l := range list.lids {
				guid, ok := port[l]
				if !ok {
					return nil, fail(at, fmt.Errorf("group %q: no port has base LID %d in %s", e.Name, l, guid2lidName))
				}
				*list.to = append(*list.to, guid)
			}
			slices.Sort(*list.to)
		}
		d.groups[e.MGID] = g
		d.order = append(d.order, g)
	}
	if _, err := j.Token(); err != nil { // the end of the list
		return nil, broken(j.InputOffset(), err)
	}
	if at := j.InputOffset(); len(bytes.TrimSpace(data[at:])) > 0 {
		return nil, fail(at, errors.New("text after the list of groups"))
	}
	return d, nil
}

// of returns the declaration for an MGID, nil if there is none.
func (d *declaredGroups) of(m mft.MGID) *declaredGroup {
	if d == nil {
		return nil
	}
	return d.groups[m]
}

// sends returns true if member m sends. One that joined only to send
// does. For others the declaration decides; without one all of them send.
func (g *declaredGroup) sends(m *Member) bool {
	switch {
	case m.State&joinSends == 0:
		return false
	case g == nil || m.State&joinReceives == 0:
		return true
	}
	i := sort.Search(len(g.senders), func(i int) bool { return g.senders[i] >= m.Port })
	return i < len(g.senders) && g.senders[i] == m.Port
}

// whole returns the groups that compile was given, with those ports
// that t has. It joins entries of one name: compile divides some
// groups into trees, each with its MGID.
func (d *declaredGroups) whole(t *Tables) []mft.Group {
	if d == nil {
		return nil
	}
	var list []mft.Group
	index := make(map[string]int)
	for _, e := range d.order {
		i, seen := index[e.name]
		if !seen {
			i = len(list)
			index[e.name] = i
			list = append(list, mft.Group{Name: e.name, MLID: e.mlid, SL: e.sl})
		}
		g := &list[i]
		for _, of := range []struct {
			from []fabric.GUID
			to   *[]fabric.PortID
		}{{e.senders, &g.Senders}, {e.receivers, &g.Receivers}} {
			for _, guid := range of.from {
				if p, ok := t.endPort(guid); ok && t.joinable(p) {
					*of.to = append(*of.to, p)
				}
			}
		}
	}
	for i := range list {
		g := &list[i]
		for _, ports := range []*[]fabric.PortID{&g.Senders, &g.Receivers} {
			slices.Sort(*ports)
			*ports = slices.Compact(*ports)
		}
	}
	return slices.DeleteFunc(list, func(g mft.Group) bool { return len(g.Senders) == 0 || len(g.Receivers) == 0 })
}

// newGroups reads the file of groups again. It returns nil without a file, and if
// nothing is new. An error is logged, and the groups that were read before stay.
func (p *Plugin) newGroups() *declaredGroups {
	p.reading.Lock()
	defer p.reading.Unlock()
	name, old := p.config.Multicast.Groups, p.read
	if name == "" {
		return nil
	}
	d, err := p.groupsFile.get(fileTimeout, func() (*declaredGroups, error) { return readGroups(name, old) })
	if err != nil {
		if text := oneLine(err.Error()); p.groupsError != text {
			p.groupsError = text
			p.report(&Error{Code: BadConfig, Err: fmt.Errorf("%w; the last good groups stay", err)})
		}
		return nil
	}
	p.groupsError = ""
	if d == old {
		return nil
	}
	p.read = d
	p.log.Info("groups", zap.String("file", d.name), zap.Int("mgids", len(d.order)))
	return d
}
