package ibdiagnet

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// column is a column that a section is read for: its plain
// name, or the names that different versions have for it.
type column struct {
	names    []string
	required bool // the section cannot be read without it
}

func must(names ...string) column  { return column{names, true} }
func maybe(names ...string) column { return column{names, false} }

// sectionForm is how the rows of a section are read.
type sectionForm struct {
	columns []column
	read    func(d *draft, r *row)
}

func form(read func(d *draft, r *row), columns ...column) *sectionForm {
	return &sectionForm{columns, read}
}

// row is a row of a section; cells are numbered as the columns of its form.
type row struct {
	form   *sectionForm
	table  *table
	place  []int // by cell: index of the field, -1 if the section lacks the column
	fields [][]byte
	line   int
	text   []byte
	err    error // the first fault
}

// begin finds the columns of a form in a header row.
func (r *row) begin(t *table, form *sectionForm) error {
	r.form, r.table, r.place = form, t, r.place[:0]
	for _, c := range form.columns {
		i := t.column(c.names...)
		if i < 0 && c.required {
			return fmt.Errorf("%s has no column %s; want a header row such as ibdiagnet prints", t.name, c.names[0])
		}
		r.place = append(r.place, i)
	}
	return nil
}

// cell returns the text of a cell, without quotes; "" if it is missing or N/A.
func (r *row) cell(i int) string {
	if r.place[i] < 0 {
		return ""
	}
	text := strings.TrimSpace(unquoted(r.fields[r.place[i]]))
	if strings.EqualFold(text, "N/A") {
		return ""
	}
	return text
}

// words returns the text of a cell as it is, without quotes.
func (r *row) words(i int) string {
	if r.place[i] < 0 {
		return ""
	}
	return unquoted(r.fields[r.place[i]])
}

// refuse notes a fault of the row; the first one counts.
func (r *row) refuse(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: "+format, append([]any{r.table.name}, args...)...)
	}
}

// has returns true if a cell has a value. If it has none, but is required, it refuses the row.
func (r *row) has(i int) bool {
	if r.cell(i) != "" {
		return true
	}
	if r.form.columns[i].required {
		r.refuse("no %s", r.form.columns[i].names[0])
	}
	return false
}

// guid reads a GUID, 0 for none. Versions print it with 0x and without.
func (r *row) guid(i int) fabric.GUID {
	if !r.has(i) {
		return 0
	}
	g, err := fabric.ParseGUID(r.cell(i))
	if err != nil {
		r.refuse("%s: %w", r.form.columns[i].names[0], err)
	}
	return g
}

// number reads a decimal number, or a hexadecimal one with 0x; 0 for none.
func (r *row) number(i int, most uint64) uint64 {
	if !r.has(i) {
		return 0
	}
	text := r.cell(i)
	v, err := parseNumber(text)
	switch {
	case err != nil:
		r.refuse("%s %q: want a number, 0x and hexadecimal digits, or N/A", r.form.columns[i].names[0], text)
	case v > most:
		r.refuse("%s %s: want at most %d", r.form.columns[i].names[0], text, most)
	}
	return v
}

// small reads a number that is not required: 0 if it is missing, invalid or above most.
func (r *row) small(i int, most uint64) uint64 {
	if v, err := parseNumber(r.cell(i)); err == nil && v <= most {
		return v
	}
	return 0
}

func parseNumber(text string) (uint64, error) {
	if digits, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		return strconv.ParseUint(digits, 16, 64)
	}
	return strconv.ParseUint(text, 10, 64)
}

var (
	node = must("nodeguid")
	port = must("portnum", "portnumber")
)

// The columns of each section that is used, in the order of the cells below.
var forms = map[string]*sectionForm{
	"RUN_INFO": form((*draft).readRun, maybe("date")),
	"NODES": form((*draft).readNode, node, must("nodetype"), must("numports"), maybe("nodedesc", "nodedescription"),
		maybe("systemimageguid", "sysimageguid", "systemguid"), maybe("vendorid"), maybe("deviceid")),
	"PORTS": form((*draft).readPort, node, port, maybe("portguid"), maybe("lid"), maybe("lmc"),
		maybe("linkwidthactv", "linkwidthactive"), maybe("linkspeedactv", "linkspeedactive"), maybe("portstate"),
		maybe("opvls"), maybe("nmtu", "neighbormtu")),
	"LINKS":    form((*draft).readLink, must("nodeguid1"), must("portnum1"), must("nodeguid2"), must("portnum2")),
	"SWITCHES": form((*draft).readSwitch, node, maybe("mcastfdbcap"), maybe("enp0", "enhancedport0")),
	"PORT_HIERARCHY_INFO": form((*draft).readLabel, node, port, maybe("label"), maybe("bus"), maybe("device"),
		maybe("function"), maybe("asic"), maybe("cage"), maybe("port"), maybe("split")),
	"SM_INFO": form((*draft).readSM, node, maybe("guid", "portguid"), maybe("portnumber", "portnum"), maybe("smstate", "state")),
	"PKEY":    form((*draft).readPKey, node, must("localportnum", "portnum", "portnumber"), must("pkey"), maybe("membership")),
	"VPORTS":  form((*draft).readVPort, node, port, maybe("vportindex"), maybe("vportlid")),
}

// counterForms are the sections that are read for counters.
var counterForms = map[string]*sectionForm{
	"RUN_INFO":     forms["RUN_INFO"],
	counterSection: form((*draft).readCounters, counterColumns()...),
	// Registers without names: after the BERs of raw and corrected bits comes the BER of symbols
	// after FEC, as a whole number and the power of ten to divide it by.
	"PHY_DB16": form((*draft).readBER, node, port, must("field16"), must("field17")),
	"CABLE_INFO": form((*draft).readModule, node, port, maybe("temperature (c)", "temperature"),
		maybe("tx bias alarm and warning"), maybe("tx power alarm and warning"), maybe("rx power alarm and warning"), maybe("latched voltage alarm and warning"),
		maybe("hightemperaturealarm"), maybe("hightemperaturewarning"), maybe("lowtemperaturealarm"), maybe("lowtemperaturewarning"),
		maybe("highsupplyvoltagealarm"), maybe("highsupplyvoltagewarning"), maybe("lowsupplyvoltagealarm"), maybe("lowsupplyvoltagewarning")),
}

// counterColumns returns the columns of PM_INFO: the port, and for each counter the column of
// 64 bits and the other one. In some versions the name of the first ends in Ext or Extended.
func counterColumns() []column {
	list := []column{node, must("portnumber", "portnum")}
	for k := range dump.CounterCount {
		name := plain(k.Info().Name)
		list = append(list, maybe(name+"ext", name+"extended"), maybe(name))
	}
	return list
}

// isNeeded returns true if the fabric is made of this section, or if it
// has the counters to read. Other sections differ between versions;
// their unreadable rows are left out.
func isNeeded(section string) bool {
	return section == "NODES" || section == "PORTS" || section == "LINKS" || section == counterSection
}

// warningForm is the form of all sections of warnings and errors.
var warningForm = form((*draft).readWarning, maybe("nodeguid"), maybe("portnumber", "portnum"), maybe("eventname"), maybe("summary"))

// formOf returns the form of a section, nil if the section is not used.
func (d *draft) formOf(name string) *sectionForm {
	if d.counters != nil {
		return counterForms[name]
	}
	if strings.HasPrefix(name, "WARNINGS_") || strings.HasPrefix(name, "ERRORS_") {
		return warningForm
	}
	return forms[name]
}
