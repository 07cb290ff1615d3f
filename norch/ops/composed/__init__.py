"""Operations that are composed of others. They have no kernel and no derivative."""
