package rehearse

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// explain notes known reasons for differences between tables.
func (r *run) explain() {
	report, byFile := r.report, r.report.Via == ViaFile
	if report.Engine != r.config.Engine {
		r.explainFallback(byFile)
	}
	if !report.SubnetUp {
		r.note("OpenSM did not bring the subnet up, so what the switches have is not its last word")
	}
	r.explainUnread()
	if report.WrongLIDs > 0 {
		r.explainLIDs()
	}
	if !byFile {
		r.explainPlugin()
	}
}

// explainFallback notes why OpenSM does not have our tables, if its log has the reason.
func (r *run) explainFallback(byFile bool) {
	what, marks := "did not use "+r.config.Engine, []string{"ibweave: ERR", "Error loading plugin", "setup routing engine"}
	if byFile {
		what, marks = "gave up "+lftsFile, []string{"do_", "PARSE ERROR"}
	}
	instead, why := "no tables at all", ""
	if r.report.Engine != "" {
		instead = "its own " + r.report.Engine + " tables"
	}
	badPort := false
	for _, e := range r.report.Errors {
		if why == "" && slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(e, mark) }) {
			why = ", because of: " + strings.TrimSpace(e)
		}
		badPort = badPort || byFile && strings.Contains(e, "Invalid port ")
	}
	r.note("OpenSM %s and has %s instead%s", what, instead, why)
	if badPort {
		r.note("a row names a port that the switch does not have, and OpenSM gives up the whole file at the first one; a LID without a path must have no row, not one with port 255")
	}
}

// explainUnread notes why OpenSM did not find some switches.
func (r *run) explainUnread() {
	if r.report.Unread == 0 {
		return
	}
	centre := ibsim.Centre(r.f)
	distance := r.f.Distances()
	apart, far := 0, 0
	for _, s := range r.f.Switches() {
		switch d := distance.To(centre)[s]; {
		case d == fabric.Unreachable:
			apart++
		case d > mad.MaxHops:
			far++
		}
	}
	if apart > 0 {
		r.note("the fabric is in pieces: no cables lead to %d of the switches from the largest piece, where OpenSM ran", apart)
	}
	if far > 0 {
		r.note("%d of the switches are more than %d links away from %s, where OpenSM ran: directed routes do not reach them", far, mad.MaxHops, r.f.Name(centre))
	}
	if apart+far == 0 {
		r.note("OpenSM did not find all switches: see the errors")
	}
}

// explainLIDs notes where guid2lid, as it was before OpenSM ran, differs from the fabric.
func (r *run) explainLIDs() {
	r.note("a row of %s is for the port that its comment names, wherever that has its LID now: with other LIDs, other entries change", lftsFile)
	name := filepath.Join(r.opt.Dir, guid2lidFile)
	data, err := files.ReadRegular(name, maxLFTs)
	if r.opt.Dir == "" || err != nil {
		return
	}
	ranges, _, _ := dump.ReadGUID2LID(name, data, dump.Options{Lenient: true})
	byPort := make(map[fabric.GUID]fabric.LID, len(ranges))
	for _, one := range ranges {
		byPort[one.Port] = one.Min
	}
	absent, other := 0, 0
	r.f.EndPorts(func(p fabric.PortID) {
		if lid, listed := byPort[r.f.PortGUID(p)]; !listed {
			absent++
		} else if lid != r.f.LID(p) {
			other++
		}
	})
	if absent > 0 {
		r.note("%s lacks %d of the end ports: OpenSM gives them LIDs that are free", name, absent)
	}
	if other > 0 {
		r.note("%s has other LIDs than the fabric for %d of the end ports", name, other)
	}
}

// maxLFTs bounds the files of a directory, in bytes: the tables of ibsim's largest fabrics
// have less.
const maxLFTs = 4 << 30
