#!/usr/bin/env python3
"""Checks that forwarding tables have no credit loop, by the certificate beside them.

    check_certificate.py DIR..

DIR has fabric.ibnetdiscover, opensm-lfts.dump and certificate.txt, and where lanes are in use
opensm-sl2vl.dump and path-sls.dump, as ibweave compile writes them.

Why that is a proof. A packet in a channel (a direction of a cable, on one virtual lane) waits for
the next one of its path. Packets wait for each other for ever only if these dependencies have a
cycle. The certificate numbers the channels. Here every packet is followed from port to port by the
tables: if the number grows at each step, there is no cycle. Lost packets and multicast are left out.
"""
import hashlib
import os
import re
import struct
import sys

KINDS = {"Ca": 1, "Switch": 2, "Rt": 3}  # IBA 14.2.5.3
DROP = 15  # the VL of packets that are dropped
ANY = range(16)  # all SLs
show = "{0[0]:#x}[{0[1]}] VL {0[2]}".format  # a channel

def need(condition, message):
    if not condition:
        raise ValueError(message)

def lines(folder, name):
    """Yields the lines of a file that are not empty, and no comment."""
    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
        for line in file:
            need(not line.startswith("# sampled:"), f"{name} was read in part: {line.strip()}")
            if line.strip() and not line.startswith("#"):
                yield line.rstrip("\r\n")

class Fabric:
    """Nodes by GUID: type and number of ports. A port is a pair of GUID and number."""
    def __init__(self, folder):
        self.nodes, self.switches, self.peer, self.owner, node = {}, set(), {}, {}, None
        for line in lines(folder, "fabric.ibnetdiscover"):
            head = re.match(r'(Switch|Ca|Rt)\t(\d+) "[SHR]-([0-9a-f]{16})"(.*)', line)
            port = re.match(r'\[(\d+)\](?:\([0-9a-f]+\))?\s+"[SHR]-([0-9a-f]{16})"\[(\d+)\](.*)', line)
            if head:
                node = int(head[3], 16)
                need(node not in self.nodes, f"node {node:#x} twice")
                self.nodes[node] = (KINDS[head[1]], int(head[2]))
                if head[1] == "Switch":
                    self.switches.add(node)
                    self.take_lid((node, 0), head[4])
            elif port:
                end = (node, int(port[1]))
                need(node is not None and end not in self.peer, f"a second cable: {line}")
                self.peer[end] = (int(port[2], 16), int(port[3]))
                if node not in self.switches:
                    self.take_lid(end, port[4])
            else:
                need(re.match(r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=", line), f"unknown line: {line}")
        for end, peer in self.peer.items():
            there = end != peer and 1 <= end[1] <= self.nodes[end[0]][1]
            need(self.peer.get(peer) == end and there, f"a cable with one end, or no such port: {end[0]:#x}[{end[1]}]")

    def take_lid(self, port, text):
        """Takes over the base LID and LMC behind a line's other end: # lid 5 lmc 0, # "name" base port 0 lid 5 lmc 0."""
        found = re.match(r'(?:\([0-9a-f]+\))?\s*# (?:".*" .*port 0 )?lid (\d+) lmc (\d)\b', text)
        first = int(found[1]) if found else 0
        for lid in range(first, first + (1 << int(found[2]))) if first else ():
            need(lid not in self.owner, f"LID {lid} twice")
            self.owner[lid] = port

    def digest(self):
        """Returns the SHA-256 of nodes and cables to which a certificate is bound."""
        order = sorted(self.nodes, key=lambda guid: (guid not in self.switches, guid))
        base, end = {}, 0
        for guid in order:
            base[guid], end = end, end + self.nodes[guid][1] + 1
        data = b""
        for guid in order:
            ports = self.nodes[guid][1]
            data += struct.pack(">BBQ", *self.nodes[guid], guid)
            for number in range(1, ports + 1):
                peer = self.peer.get((guid, number))
                data += struct.pack(">i", base[peer[0]] + peer[1] if peer else -1)
        return hashlib.sha256(data).hexdigest()

def read_tables(folder, fabric):
    """Returns output ports by switch and LID."""
    tables, row, ports = {}, None, 0
    for line in lines(folder, "opensm-lfts.dump"):
        head = re.match(r"Unicast lids \[\d+-\d+\] of switch Lid \d+ guid 0x([0-9a-f]{16}) ", line)
        entry = re.match(r"0x([0-9a-f]{4}) (\d{3})\b", line)
        if head:
            need(int(head[1], 16) in fabric.switches, f"unknown switch: {line}")
            row, ports = tables.setdefault(int(head[1], 16), {}), fabric.nodes[int(head[1], 16)][1]
        elif entry:
            fits = row is not None and int(entry[1], 16) not in row and (int(entry[2]) <= ports or int(entry[2]) == 255)
            need(fits, f"a second entry, or no such port: {line}")
            row[int(entry[1], 16)] = int(entry[2])
        else:
            need(re.match(r"\d+ (valid )?lids dumped", line), f"unknown line: {line}")
    return tables

def read_lanes(folder, fabric):
    """Returns VLs by SL: by node, input and output port, of hosts 0 and their port."""
    lanes, node = {}, None
    for line in lines(folder, "opensm-sl2vl.dump"):
        head = re.match(r"(Switch|Channel Adapter|Router) 0x([0-9a-f]{16}), base LID (\d+), ", line)
        row = re.fullmatch(r"(\d+)\s+(\d+)\s*:((?:\s*\d+){16})\s*", line)
        if head:
            node = fabric.owner.get(int(head[3]))
            need(node is not None, f"no port has LID {head[3]}")
        else:
            need(row and node is not None, f"unknown line: {line}")
            way = (node[0], int(row[1]), int(row[2]) or node[1])  # a host has 0 for both
            need(lanes.setdefault(way, row[3].split()) == row[3].split(), f"a second row: {line}")
    return lanes

def read_sls(folder):
    """Returns SLs by LID, by source: the GUID of a switch, or a port."""
    sls, row = {}, None
    for line in list(lines(folder, "path-sls.dump"))[1:]:
        source = re.match(r"(?:switch 0x([0-9a-f]{16})|port 0x([0-9a-f]{16})\[(\d+)\])( |$)", line)
        run = re.fullmatch(r"dlid (\d+)(?:-(\d+))? sl (\d+|\?)", line)
        if source:
            row = row if row == {} else {}
            sls[int(source[1], 16) if source[1] else (int(source[2], 16), int(source[3]))] = row
        else:
            need(run and row is not None and (run[3] == "?" or int(run[3]) < 16), f"unknown line: {line}")
            for lid in range(int(run[1]), int(run[2] or run[1]) + 1):
                row[lid] = ANY if run[3] == "?" else (int(run[3]),)
    return sls

def check(folder):
    """Raises a ValueError unless the certificate of a folder holds. Returns how many dependencies it has followed."""
    fabric = Fabric(folder)
    tables = read_tables(folder, fabric)
    need(tables, "no forwarding tables")
    lanes = read_lanes(folder, fabric) if "opensm-sl2vl.dump" in os.listdir(folder) else None  # all on one VL
    sls = read_sls(folder) if "path-sls.dump" in os.listdir(folder) else None  # paths may have any
    text = list(lines(folder, "certificate.txt"))
    head = re.fullmatch(r"ibweave certificate 1 traffic unicast(\+management)?(\+multicast)? vls (\d+) channels (\d+)"
                        r" fabric sha256:([0-9a-f]{64})", text[0] if text else "")
    need(head, "no certificate")
    need(not head[2], "the certificate covers multicast packets, which are not checked here")
    need(head[5] == fabric.digest(), "the certificate is of a fabric with other nodes or cables")
    need(len(text) == int(head[4]) + 1, "the certificate lacks channels")
    numbers = {}  # by GUID, port and VL
    for line in text[1:]:
        row = re.fullmatch(r"0x([0-9a-f]{16}) (\d+) (\d+) (\d+)", line)
        need(row, f"unknown line: {line}")
        channel = (int(row[1], 16), int(row[2]), int(row[3]))
        need(channel not in numbers and channel[:2] in fabric.peer and channel[2] < int(head[3]), f"wrong channel: {line}")
        numbers[channel] = int(row[4])
    def vl_of(node, into, out, sl):
        return int(lanes.get((node, into, out), [0] * 16)[sl]) if lanes else 0

    followed, ends = 0, {end for end in fabric.owner.values() if head[1] or end[0] not in fabric.switches}
    for lid, owner in fabric.owner.items():
        if owner not in ends:
            continue
        for sl in ANY if lanes else (0,):
            arrives = {}  # by switch, input port and the channel that a packet holds
            for source in ends - {owner}:
                at, held = source, None  # port 0 of a switch
                if source[0] not in fabric.switches:
                    at, held = fabric.peer.get(source), source + (vl_of(source[0], 0, source[1], sl),)
                    if at is None or at[0] not in fabric.switches or held[2] == DROP:
                        continue
                if lanes and sls and sl not in sls.get(source, sls.get(at[0], {})).get(lid, ANY):
                    continue
                path, spot = [], at + (held,)
                while spot not in arrives:
                    arrives[spot] = False  # unless it turns out that it does; a loop stays so
                    node, into, held = spot
                    out = tables.get(node, {}).get(lid, 255)
                    if (node, out) == owner:  # port 0 of the switch itself
                        arrives[spot] = True
                    elif out and (node, out) in fabric.peer and vl_of(node, into, out, sl) != DROP:
                        path.append((spot, (node, out, vl_of(node, into, out, sl))))
                        peer = fabric.peer[node, out]
                        spot = peer + (path[-1][1],)
                        if peer == owner or peer[0] not in fabric.switches:
                            arrives[spot] = peer == owner
                for passed, channel in path if arrives[spot] else ():
                    arrives[passed] = True
                    followed += 1
                    before, after = numbers.get(passed[2], -1), numbers.get(channel, -1)
                    need(after >= 0 and (passed[2] is None or 0 <= before < after), f"packets for LID {lid} hold "
                         f"{passed[2] and show(passed[2])}, number {before}, and wait for {show(channel)}, number {after}")
    return followed

if __name__ == "__main__":
    failed = False
    for name in sys.argv[1:] or sys.exit(__doc__):
        try:
            print(f"{name}: the certificate holds: {check(name)} dependencies")
        except (ValueError, OSError) as wrong:
            print(f"{name}: {wrong}")
            failed = True
    sys.exit(failed)
