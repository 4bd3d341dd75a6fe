package outdir

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
)

func TestInstallDir(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}))(t)
	r := short.Must(compile.Run(t.Context(), f, &compile.Engines[0], compile.Options{}))(t)
	for _, dir := range []string{"tables", "/a b", "/a#b", ""} {
		if _, err := Write(t.Context(), t.TempDir()+"/out", r, Options{InstallDir: dir}); err == nil {
			t.Errorf("an opensm.conf for %q was written", dir)
		}
	}
}

func TestInstallCommands(t *testing.T) {
	all := []string{LFTsName, ConfigName, PluginConfigName, PluginOpenSMName}
	for _, tc := range []struct {
		dir            string
		opt            Options
		have           []string
		plugin, static []string
	}{
		{"out's", Options{InstallDir: "/etc/opensm/ibweave", Zstd: true}, all, []string{
			"systemctl stop opensm",
			"mkdir -p /etc/opensm/ibweave",
			`cp 'out'\''s'/* /etc/opensm/ibweave/`,
			"zstd -d -q -f --rm /etc/opensm/ibweave/*.zst",
			"cp /etc/opensm/ibweave/guid2lid /var/cache/opensm/guid2lid",
			"cat /etc/opensm/ibweave/opensm-plugin.conf >>/etc/opensm/opensm.conf",
			"systemctl start opensm",
		}, []string{
			"systemctl stop opensm",
			"mkdir -p /etc/opensm/ibweave",
			`cp 'out'\''s'/* /etc/opensm/ibweave/`,
			"zstd -d -q -f --rm /etc/opensm/ibweave/*.zst",
			"cp /etc/opensm/ibweave/guid2lid /var/cache/opensm/guid2lid",
			"cat /etc/opensm/ibweave/opensm.conf >>/etc/opensm/opensm.conf",
			"systemctl start opensm",
		}},
		{"/etc/opensm/ibweave/", Options{InstallDir: "/etc/opensm/ibweave"}, []string{PluginOpenSMName}, []string{
			"systemctl stop opensm",
			"cp /etc/opensm/ibweave/guid2lid /var/cache/opensm/guid2lid",
			"cat /etc/opensm/ibweave/opensm-plugin.conf >>/etc/opensm/opensm.conf",
			"systemctl start opensm",
		}, nil},
		{"out", Options{InstallDir: "/x"}, []string{LFTsName}, nil, nil},
	} {
		plugin, static := InstallCommands(tc.dir, tc.have, tc.opt)
		if d := cmp.Diff([][]string{tc.plugin, tc.static}, [][]string{plugin, static}); d != "" {
			t.Error(d)
		}
	}
}
