package outdir

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
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

// TestPluginFiles has what the plugin reads, and the order of the switches.
func TestPluginFiles(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 2, Levels: 2}))(t)
	hosts := f.CAPorts()
	groups := func(*fabric.Fabric) ([]mft.Group, error) {
		return []mft.Group{{Name: "g", Senders: hosts[:1], Receivers: hosts[1:]}}, nil
	}
	r := short.Must(compile.Run(t.Context(), f, short.Must(compile.EngineByName("updn"))(t), compile.Options{Groups: groups}))(t)
	dir := filepath.Join(t.TempDir(), "out")
	options := map[string]any{"vls": 2, "dims": []int{4, 3}, "roots": []string{}, "mcast-balance": true}
	short.Must(Write(t.Context(), dir, r, Options{InstallDir: "/i", Labels: true, Options: options}))(t)
	for name, want := range map[string]string{
		PluginConfigName: "# How OpenSM's plugin makes what ibweave's updn made.\ndims: 4x3\nvls: 2\nmulticast: {balance: true, groups: \"/i/groups.json\"}\n",
		OrderName:        "0x0000000000200000 # \"leaf 0\"\n0x0000000000200002 # \"spine 0\"\n0x0000000000200001 # \"leaf 1\"\n",
	} {
		short.Equal(t, string(short.Must(os.ReadFile(filepath.Join(dir, name)))(t)), want, name)
	}
	short.Contains(t, string(short.Must(os.ReadFile(filepath.Join(dir, PluginOpenSMName)))(t)), "\n# The groups are created by the lines of /i/partitions.conf;\n")
}

func TestInstallCommands(t *testing.T) {
	const (
		keepFiles = "tar -cPf /etc/opensm/before-ibweave.tar --ignore-failed-read /etc/opensm/opensm.conf /var/cache/opensm/guid2lid"
		merge     = "cat /var/cache/opensm/guid2lid 2>/dev/null | awk '" + mergeLIDs + "' /etc/opensm/ibweave/guid2lid - >/var/cache/opensm/guid2lid.new"
	)
	all := []string{LFTsName, ConfigName, PluginConfigName, PluginOpenSMName}
	for _, tc := range []struct {
		dir            string
		opt            Options
		have           []string
		plugin, static []string
		undo           []string // nil for any
	}{
		{"out's", Options{InstallDir: "/etc/opensm/ibweave", Zstd: true}, all, []string{
			"systemctl stop opensm",
			keepFiles + " /etc/opensm/ibweave",
			"mkdir -p /etc/opensm/ibweave",
			`cp 'out'\''s'/* /etc/opensm/ibweave/`,
			"zstd -d -q -f --rm /etc/opensm/ibweave/*.zst",
			merge,
			"mv /var/cache/opensm/guid2lid.new /var/cache/opensm/guid2lid",
			"cat /etc/opensm/ibweave/opensm-plugin.conf >>/etc/opensm/opensm.conf",
			"systemctl start opensm",
		}, []string{
			"systemctl stop opensm",
			keepFiles + " /etc/opensm/ibweave",
			"mkdir -p /etc/opensm/ibweave",
			`cp 'out'\''s'/* /etc/opensm/ibweave/`,
			"zstd -d -q -f --rm /etc/opensm/ibweave/*.zst",
			merge,
			"mv /var/cache/opensm/guid2lid.new /var/cache/opensm/guid2lid",
			"cat /etc/opensm/ibweave/opensm.conf >>/etc/opensm/opensm.conf",
			"systemctl start opensm",
		}, []string{
			"systemctl stop opensm",
			"tar -tPf /etc/opensm/before-ibweave.tar >/dev/null && rm -f /etc/opensm/opensm.conf /var/cache/opensm/guid2lid && " +
				"(cd /etc/opensm/ibweave && rm -f opensm-lfts.dump opensm.conf ibweave.yaml opensm-plugin.conf)",
			"rmdir --ignore-fail-on-non-empty /etc/opensm/ibweave",
			"tar -xpPf /etc/opensm/before-ibweave.tar",
			"rm /etc/opensm/before-ibweave.tar",
			"systemctl start opensm",
		}},
		{"/etc/opensm/ibweave/", Options{InstallDir: "/etc/opensm/ibweave"}, []string{PluginOpenSMName}, []string{
			"systemctl stop opensm",
			keepFiles,
			merge,
			"mv /var/cache/opensm/guid2lid.new /var/cache/opensm/guid2lid",
			"cat /etc/opensm/ibweave/opensm-plugin.conf >>/etc/opensm/opensm.conf",
			"systemctl start opensm",
		}, nil, []string{
			"systemctl stop opensm",
			"tar -tPf /etc/opensm/before-ibweave.tar >/dev/null && rm -f /etc/opensm/opensm.conf /var/cache/opensm/guid2lid",
			"tar -xpPf /etc/opensm/before-ibweave.tar",
			"rm /etc/opensm/before-ibweave.tar",
			"systemctl start opensm",
		}},
		{"out", Options{InstallDir: "/x"}, []string{LFTsName}, nil, nil, nil},
	} {
		plugin, static, undo := InstallCommands(tc.dir, tc.have, tc.opt)
		short.Diff(t, [][]string{plugin, static}, [][]string{tc.plugin, tc.static})
		if d := cmp.Diff(tc.undo, undo); tc.undo != nil && d != "" {
			t.Error(d)
		}
	}
}

// TestInstallAndUndo runs the commands in a root of its own: LIDs of ports that the fabric lacks stay unless they are
// given to others, and afterwards all files are as they were, whether there were any or not.
func TestInstallAndUndo(t *testing.T) {
	short.NeedPrograms(t)
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(t)
	e := short.Must(compile.EngineByName("updn"))(t)
	for _, lmc := range []int{0, 2} {
		r := short.Must(compile.Run(t.Context(), f, e, compile.Options{LIDs: lft.LIDOptions{LMC: lmc}}))(t)
		for _, zstd := range []bool{false, true} {
			for _, fresh := range []bool{false, true} {
				root, dir := t.TempDir(), filepath.Join(t.TempDir(), "out")
				in := strings.NewReplacer("/var/cache/opensm", root+"/cache", "/etc/opensm", root+"/etc")
				opt := Options{InstallDir: "/etc/opensm/ibweave", Zstd: zstd}
				files := short.Must(Write(t.Context(), dir, r, opt))(t)
				write := func(name, text string) {
					t.Helper()
					short.Check(t, os.WriteFile(in.Replace(name), []byte(text), 0o640))
				}
				for _, d := range []string{"/etc", "/cache"} {
					short.Check(t, os.Mkdir(root+d, 0o700))
				}
				lids := func(guid string, from, to fabric.LID) string {
					return fmt.Sprintf("%s 0x%04x 0x%04x\n\n", guid, from, to)
				}
				most := r.Routing.Fabric.MaxLID()
				const absent, other = "0x00000000000000a1", "0x00000000000000a2"
				known := f.PortGUID(f.CAPorts()[0]).String()
				if !fresh {
					short.Check(t, os.Mkdir(root+"/etc/ibweave", 0o700))
					write("/etc/opensm/opensm.conf", "sweep_interval 5")
					write("/etc/opensm/ibweave/traffic.yaml", "jobs: []\n")
					write("/etc/opensm/ibweave/guid2lid", "old\n")
					write(siteLIDs, lids(absent, most+4, most+7)+lids(other, most, most)+lids(known, most+8, most+8))
				}
				was := tree(t, root)
				run := func(commands []string) {
					t.Helper()
					for _, c := range commands {
						if strings.HasPrefix(c, "systemctl ") {
							continue
						}
						if out, err := exec.Command("sh", "-e", "-c", in.Replace(c)).CombinedOutput(); err != nil {
							t.Fatalf("%s: %v\n%s", c, err, out)
						}
					}
				}
				plugin, static, undo := InstallCommands(dir, files, opt)
				for _, commands := range [][]string{plugin, static} {
					run(commands)
					now := tree(t, root)
					if !strings.Contains(now["/etc/opensm.conf"], "/etc/opensm/ibweave/") || fresh != (was["/etc/opensm.conf"] == "") || now["/etc/ibweave/manifest.json"] == "" {
						t.Errorf("installed: %q", now)
					}
					merged := now["/cache/guid2lid"]
					if has := strings.Contains(merged, lids(absent, most+4, most+7)[:33]); has == fresh || strings.Contains(merged, other) || strings.Count(merged, known) != 1 {
						t.Errorf("lmc %d: guid2lid has\n%s", lmc, merged)
					}
					run(undo)
					short.Diff(t, tree(t, root), was, "zstd", zstd, "fresh", fresh, "after undo")
				}
			}
		}
	}
}

// tree lists the files below a folder, by path, with mode and text.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all[strings.TrimPrefix(path, root)+"/"] = ""
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, root)] = info.Mode().String() + " " + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
