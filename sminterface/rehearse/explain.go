package rehearse

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// explain adds notes on what is known to make tables differ.
func (r *run) explain() error {
	report := r.report
	if report.Engine != "file" {
		r.explainFallback()
	}
	if !report.SubnetUp {
		r.note("OpenSM did not bring the subnet up, so what the switches have is not its last word")
	}
	r.explainUnread()
	if report.WrongLIDs > 0 {
		if err := r.explainLIDs(); err != nil {
			return err
		}
	}
	if report.Differences > 0 && report.Engine == "file" {
		return r.explainRemapped()
	}
	return nil
}

// explainFallback is for a file that OpenSM has given up.
func (r *run) explainFallback() {
	report := r.report
	why := ""
	for _, e := range report.Errors {
		if strings.HasPrefix(e, "do_") || strings.Contains(e, "PARSE ERROR") {
			why = ", because of: " + strings.TrimSpace(e)
			break
		}
	}
	r.note("OpenSM gave up %s and has %s instead%s", lftsFile, report.instead(), why)
	for _, e := range report.Errors {
		if strings.Contains(e, "Invalid port ") {
			r.note("a row names a port that the switch does not have, and OpenSM gives up the whole file at the first one; a LID without a path must have no row, not one with port 255")
			return
		}
	}
}

// instead says what tables OpenSM has where it did not take ours.
func (r *Report) instead() string {
	if r.Engine == "" {
		return "no tables at all"
	}
	return "its own " + r.Engine + " tables"
}

// maxDirectedHops is how many links a directed route can have (IBA 14.2.2).
const maxDirectedHops = 63

// explainUnread is for switches that were not found.
func (r *run) explainUnread() {
	if r.report.Unread == 0 {
		return
	}
	centre := ibsim.Centre(r.f)
	distance := r.f.Distances()
	apart, far := 0, 0
	for s := range fabric.NodeID(r.f.NumSwitches()) {
		switch d := distance.To(centre)[s]; {
		case d == fabric.Unreachable:
			apart++
		case d > maxDirectedHops:
			far++
		}
	}
	if apart > 0 {
		r.note("the fabric is in pieces: no cables lead to %d of the switches from the largest piece, where OpenSM ran", apart)
	}
	if far > 0 {
		r.note("%d of the switches are more than %d links away from %s, where OpenSM ran: directed routes do not reach them", far, maxDirectedHops, r.f.Name(centre))
	}
	if apart+far == 0 {
		r.note("OpenSM did not find all switches: see the errors")
	}
}

// maxGUID2LID bounds guid2lid, in bytes: 48,000 lines of 32 bytes, and comments.
const maxGUID2LID = 64 << 20

// explainLIDs compares guid2lid, as it was before OpenSM ran, with the fabric.
func (r *run) explainLIDs() error {
	r.note("a row of %s is for the port that its comment names, wherever that has its LID now: with other LIDs, other entries change", lftsFile)
	name := guid2lidFile
	if r.opt.Dir == "" {
		return nil
	}
	name = filepath.Join(r.opt.Dir, name)
	data, err := files.ReadRegular(name, maxGUID2LID)
	if errors.Is(err, fs.ErrNotExist) {
		r.note("without %s OpenSM numbers the ports as it likes", name)
		return nil
	}
	if err != nil {
		return err
	}
	ranges, problems, err := dump.ReadGUID2LID(name, data, dump.Options{Lenient: true})
	if err != nil {
		return err
	}
	for i := range min(len(problems), r.opt.Samples) {
		r.note("%s", problems[i].String())
	}
	byPort := make(map[fabric.GUID]fabric.LID, len(ranges))
	for _, one := range ranges {
		byPort[one.Port] = one.Min
	}
	absent, other := 0, 0
	r.f.EndPorts(func(p fabric.PortID) {
		lid, listed := byPort[r.f.PortGUID(p)]
		switch {
		case r.f.LID(p) == 0:
		case !listed:
			absent++
		case lid != r.f.LID(p):
			other++
		}
	})
	if absent > 0 {
		r.note("%s lacks %d of the end ports: OpenSM gives them LIDs that are free", name, absent)
	}
	if other > 0 {
		r.note("%s has other LIDs than the fabric for %d of the end ports", name, other)
	}
	return nil
}

// maxLFTs bounds opensm-lfts.dump, in bytes: the tables of ibsim's largest fabrics have less.
const maxLFTs = 4 << 30

// explainRemapped notes rows whose comment names a port that does not have the LID of the row.
func (r *run) explainRemapped() error {
	if r.opt.Dir == "" {
		return nil // our own rows have no comments
	}
	data, err := files.ReadRegular(filepath.Join(r.opt.Dir, lftsFile), maxLFTs)
	if err != nil {
		return err
	}
	_, problems, err := dump.ReadLFTs(lftsFile, data, r.f, dump.Options{Lenient: true})
	if err != nil {
		return err
	}
	moved := slices.DeleteFunc(problems, func(p fabric.Problem) bool { return p.Kind != fabric.Contradiction })
	for i := range min(len(moved), r.opt.Samples) {
		r.note("%s; OpenSM writes a row to the LID of the port that its comment names", moved[i].String())
	}
	return nil
}
