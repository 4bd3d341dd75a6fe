"""Prints the multicast masks of a group as opensm.mcfdbs: python3 masks.py FABRIC MLID GUID..

FABRIC is ibnetdiscover text. The group's tree is grown from the switch of its first member: each
further member is joined by a shortest way to the tree. All members may send.
"""
import re
import sys

fabric, mlid, members = sys.argv[1], int(sys.argv[2], 0), {int(g, 16) for g in sys.argv[3:]}
links, hosts, switch = {}, [], None  # links[switch][port] = switch; hosts are (switch, port, GUID)
for line in open(fabric):
    if m := re.match(r'Switch\s+\d+\s+"S-(\w+)"', line):
        switch = int(m[1], 16)
        links[switch] = {}
    elif line.startswith("Ca") or line.startswith("Rt"):
        switch = None
    elif switch is not None and (m := re.match(r'\[(\d+)\]\s+"([SH])-(\w+)"\[\d+\](?:\((\w+)\))?', line)):
        if m[2] == "S":
            links[switch][int(m[1])] = int(m[3], 16)
        else:
            hosts.append((switch, int(m[1]), int(m[4], 16)))
leaves = [h for h in hosts if h[2] in members]
if len(leaves) != len(members) or not leaves:
    sys.exit("masks.py: some GUIDs are of no host")

tree, masks = {leaves[0][0]}, {}  # masks[switch] = ports
for leaf, port, _ in leaves:
    masks.setdefault(leaf, set()).add(port)
    came, row = {leaf: None}, [leaf]
    while not tree & set(row):
        step = []
        for s in row:
            for p, to in sorted(links[s].items()):
                if to not in came:
                    came[to] = (s, p)
                    step.append(to)
        row = step
    at = min(tree & set(row))
    while came[at]:
        tree.add(at)
        s, p = came[at]
        back = min(q for q, to in links[at].items() if to == s)
        masks.setdefault(s, set()).add(min(q for q, to in links[s].items() if to == at))
        masks.setdefault(at, set()).add(back)
        at = s
    tree.add(leaf)
for s in sorted(masks):
    ports = "  ".join("0x%03X" % p for p in sorted(masks[s]))
    print("\nSwitch 0x%016x\nLID    : Out Port(s)\n0x%04X : %s " % (s, mlid, ports))
