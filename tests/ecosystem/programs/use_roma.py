"""roma: rotations as matrices, quaternions and vectors, their projections and averages, with gradients."""

import roma
import torch
from numbers_made import array, show

q = torch.tensor(array(5, 4))
q = q / q.norm(dim=-1, keepdim=True)
q.requires_grad_()
R = roma.unitquat_to_rotmat(q)
show("R", R)
show("rv", roma.rotmat_to_rotvec(R))
show("uq", roma.rotmat_to_unitquat(R))
show("euler", *roma.rotmat_to_euler("xyz", R))
M = torch.tensor(array(5, 3, 3, seed=1), requires_grad=True)
P = roma.special_procrustes(M)
show("P", P)
P.pow(3).sum().backward()
show("g", M.grad)
show("gs", roma.special_gramschmidt(M), roma.symmatrixvec_to_unitquat(torch.tensor(array(2, 10))))
show(
    "slerp",
    roma.unitquat_slerp(q[0], q[1], torch.linspace(0, 1, 5, dtype=q.dtype)),
    roma.rotvec_slerp(
        torch.tensor(array(3)), torch.tensor(array(3, seed=2)), torch.linspace(0, 1, 4, dtype=torch.float64)
    ),
)
x, y = torch.tensor(array(20, 3)), torch.tensor(array(20, 3, seed=5))
show("reg", *roma.rigid_points_registration(x, y))
show("regs", *roma.rigid_points_registration(x, y, compute_scaling=True))
T = roma.Rigid(R.detach(), torch.tensor(array(5, 3)))
show("T", T.apply(torch.tensor(array(5, 3, seed=3))), T.inverse().to_homogeneous(), (T @ T).translation)
show("qa", roma.quat_action(q, torch.tensor(array(5, 3))))
show("geo", roma.rotmat_geodesic_distance(R, R.roll(1, 0)), roma.unitquat_geodesic_distance(q, q.roll(1, 0)))
show("6d", roma.special_gramschmidt(torch.tensor(array(4, 3, 2))))
show("dq", *roma.unitquat_to_rotvec(q).unbind(0))
q.grad = None
roma.unitquat_to_rotvec(q).sum().backward()
show("qg", q.grad)
show("svd", *roma.procrustes(M))
show("mean", roma.quat_composition([q, q, q], normalize=True))
